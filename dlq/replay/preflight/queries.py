"""Before a job on dead letters begins: what will happen, what is left out and why, what to think about first.

`run_preflight` tells people, and a job is refused for the same verdict. The planning of a job leaves out by
the same rules (`skips`), so nobody is told what then does not happen.
"""

from dataclasses import dataclass
from datetime import datetime

import structlog
from django.conf import settings
from django.db.models import QuerySet

from agents.models import LaunchSetting, OfferedAgent
from agents.models.server import lost_before
from agents.provisioning.queue_counts import Figures, asked_now, broker_away_since, figures_of, message_count
from broker.management.queues import find
from broker.port import BrokerError
from console.broker import management, with_timeout
from contract.names import BIN, dead_letter_queue
from dlq.models import Action, DeadLetter, Scope
from dlq.replay.preflight.rules import PreflightResult, ReplayTarget, judge
from dlq.replay.preflight.skips import Letter, policy_for, read, with_past

# -- facts for a pre-flight: at most COUNTED dead letters, one setting, the broker's figures -----------------


log = structlog.get_logger(__name__)

COUNTED = 10_000


def letters_of(rows: QuerySet[DeadLetter]) -> tuple[list[Letter], bool]:
    """The newest COUNTED dead letters of a scope, and whether there are more."""
    found = read(rows.order_by("-pk")[: COUNTED + 1])
    return found[:COUNTED], len(found) > COUNTED


def place_of(action: str, target: LaunchSetting | None, queue: str, now: datetime) -> ReplayTarget:
    """Returns where dead letters go: into the subscription of `target`, or (`discard`, `put back`) into a
    dead-letter queue."""
    if action == Action.DISCARD:
        return ReplayTarget(dead_letter_queue(BIN))
    if action == Action.PUT_BACK:
        return ReplayTarget(queue)
    if target is None:
        return ReplayTarget(queue, exists=False)
    # A count of some seconds ago may be of before it was switched off.
    figures = figures_of(target) if target.enabled else asked_now(target)
    offers = OfferedAgent.objects.filter(
        name=target.agent, server__pools=target.pool_id, server__last_seen_at__gt=lost_before(now)
    )
    versions = list(offers.values_list("version", flat=True))
    return ReplayTarget(
        queue=target.key,
        setting_key=target.key,
        exists=target.takes_messages and not _missing(target, figures),
        enabled=target.enabled,
        tripped=not target.enabled and target.trips.filter(ended_at=None).exists(),
        consumers=None if figures.stale else figures.consumers,
        servers=len(versions),
        versions=frozenset(filter(None, versions)),
        ordered=target.ordered,
        newer=_newer(figures),
    )


def _newer(figures: Figures) -> int | None:
    if figures.waiting is None:
        return None
    return figures.waiting + (figures.delayed or 0) + (figures.in_delivery or 0)


def _missing(target: LaunchSetting, figures: Figures) -> bool:
    """Returns whether the broker says that the subscription is not there. One that does not answer says
    nothing."""
    if not figures.problem:
        return False
    try:
        return with_timeout(lambda: find(management(), "listQueues", target.key)) is None
    except BrokerError as error:
        log.info("nobody knows whether a subscription is there", setting=target.key, reason=str(error))
        return False


def index_count(rows: QuerySet[DeadLetter]) -> int:
    """Counts above COUNTED no further than somebody asks: whether there are too many for one person."""
    bound: int = settings.MA_SECOND_PERSON_ABOVE + 1
    return rows.order_by()[:bound].count() if bound > COUNTED else COUNTED


def exact_count(queue: str) -> int | None:
    """The broker's count of a dead-letter queue."""
    return message_count(queue)


def node_id() -> str:
    """Returns the id of the broker that is asked; empty while it does not answer."""
    try:
        return str(with_timeout(lambda: management().attribute("broker", "NodeID")))
    except BrokerError:
        return ""


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """Holds what a person wants to do: `rows` are the dead letters of the scope, as the job would take them.
    `target` is the setting that gets them: None for what goes into a dead-letter queue, `target_queue`
    then."""

    setting_key: str
    action: str
    scope: str
    rows: QuerySet[DeadLetter]
    source_queue: str
    target: LaunchSetting | None = None
    target_queue: str = ""
    ladder: bool = False


def run_preflight(asked: PreflightRequest, now: datetime) -> PreflightResult:
    """Checks at most 10,000 dead letters, whatever the scope holds. Never raises because the broker is
    away."""
    one = asked.scope == Scope.ONE
    letters, more = letters_of(asked.rows)
    place = place_of(asked.action, asked.target, asked.target_queue, now)
    node = "" if broker_away_since() else node_id()
    policy = with_past(letters, policy_for(asked.setting_key, asked.action, now=now, one=one, node_id=node))
    why = [(letter, policy.why_not(letter)) for letter in letters]
    return judge(why, policy, place, total=_total(asked) if more else None, ladder=asked.ladder)


def _total(asked: PreflightRequest) -> int:
    """Asks the broker for all of a queue, the index for a filter."""
    whole = asked.scope == Scope.ALL and asked.action != Action.PUT_BACK
    return (exact_count(asked.source_queue) if whole else None) or index_count(asked.rows)
