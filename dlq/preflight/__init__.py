"""Before a job on dead letters begins: what will happen, what is left out and why, what to think about first.

`fly` tells people, and a job is refused for the same verdict. The planning of a job leaves out by the same
rules (`skipping`), so nobody is told what then does not happen.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from agents.models import LaunchSetting
from agents.services.queue_counts import broker_away_since
from dlq.models import Action, DeadLetter, Scope
from dlq.preflight.facts import exact_count, index_count, letters_of, node_id, place_of
from dlq.preflight.judgement import CODES, TYPED_ABOVE, Flight, Warning, judge
from dlq.preflight.skipping import policy_for, with_past

__all__ = ["CODES", "TYPED_ABOVE", "Asked", "Flight", "Warning", "fly"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person wants to do: `rows` are the letters of the scope, as the job would take them. `target` is
    the setting that gets them: None for what goes into a dead-letter queue, `target_queue` then."""

    setting_key: str
    action: str
    scope: str
    rows: QuerySet[DeadLetter]
    source_queue: str
    target: LaunchSetting | None = None
    target_queue: str = ""
    ladder: bool = False


def fly(asked: Asked, now: datetime) -> Flight:
    """At most 10,000 letters are looked at, whatever the scope holds. Never raises because the broker is
    away."""
    one = asked.scope == Scope.ONE
    letters, more = letters_of(asked.rows)
    place = place_of(asked.action, asked.target, asked.target_queue, now)
    node = "" if broker_away_since() else node_id()
    policy = with_past(letters, policy_for(asked.setting_key, asked.action, now=now, one=one, node_id=node))
    why = [(letter, policy.why_not(letter)) for letter in letters]
    return judge(why, policy, place, total=_total(asked) if more else None, ladder=asked.ladder)


def _total(asked: Asked) -> int:
    """Of all of a queue the broker knows, of a filter the index."""
    whole = asked.scope == Scope.ALL and asked.action != Action.PUT_BACK
    return (exact_count(asked.source_queue) if whole else None) or index_count(asked.rows)
