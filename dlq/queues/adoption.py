"""Dead letters of a foreign dead-letter queue, or of nobody, sorted into the dead-letter queues of the
settings that they died in, by `_AMQ_ORIG_QUEUE`.

The broker moves them, a slice at a time: a slice is in one queue or in the other, whole, whenever this
process dies. What is left to do is what still lies in the source, so a run that was killed is repeated and
nothing else. A moved dead letter does not come through the feed (the broker gives it to its target alone):
the queues are marked to be walked before the first slice, and the sweep brings the index to what lies there.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from broker.management.dead_letters import move_of_queue
from broker.management.queues import every
from broker.port import Browser, Management
from console.audit.log import record
from console.jobs import crash
from contract.names import dead_letter_queue, subscription_of
from contract.typed import storable
from dlq.dead_letters.rules.parser import origin_queue_of
from dlq.index.queries import UNKNOWN_QUEUE
from dlq.index.walk import checked_walk
from dlq.models import LetterQueue
from dlq.queues.operations import check_foreign_queue

ADOPT = "foreign_queue.adopt"
# Names of origins that are told apart; dead letters may claim any.
MOST_ORIGINS = 10_000
ASKED_AT_ONCE = 500
# Dead letters of one move: it is one scan of the queue under a lock of the whole broker.
SLICE = 1000


@dataclass(frozen=True, slots=True)
class OriginShare:
    """The dead letters of one origin. `key` is the setting that gets them; empty: they stay, `why`."""

    origin: str
    letters: int
    key: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class AdoptionPlan:
    source: str
    address: str
    shares: list[OriginShare] = field(default_factory=list)

    @property
    def going(self) -> list[OriginShare]:
        return [share for share in self.shares if share.key]

    @property
    def staying(self) -> list[OriginShare]:
        return [share for share in self.shares if not share.key]


def plan_adoption(
    source: str, asked: Management, browser: Browser, on_seen: Callable[[int], None] = lambda seen: None
) -> AdoptionPlan:
    """Reads the queue from head to end, changing nothing; `on_seen` is given how many dead letters were read
    so far. Raises Refused, WalkIncomplete, BrokerError."""
    address = settings.MA_DLA_ADDRESS if source == UNKNOWN_QUEUE else check_foreign_queue(source, asked)
    seen, origins = 0, Counter[str]()
    for piece in checked_walk(source, address, asked, browser):
        for encoded in piece:
            origin = origin_queue_of(encoded)
            origins[origin if origin in origins or len(origins) < MOST_ORIGINS else ""] += 1
        seen += len(piece)
        on_seen(seen)
    return AdoptionPlan(source, address, list(_shares(origins, asked)))


def _shares(origins: Counter[str], asked: Management) -> Iterator[OriginShare]:
    known = _settings_among([storable(subscription_of(name)) for name in origins])
    there = {row["name"] for row in every(asked, "listQueues") if row["address"] == settings.MA_DLA_ADDRESS}
    for origin, letters in origins.most_common():
        key = subscription_of(origin)
        if not origin:
            yield OriginShare(origin, letters, why=_("original queue unknown"))
        elif key not in known:
            yield OriginShare(origin, letters, why=_("no launch setting uses this queue"))
        elif dead_letter_queue(key) not in there:
            yield OriginShare(origin, letters, why=_("the setting has no dead-letter queue on the broker"))
        else:
            yield OriginShare(origin, letters, key=key)


def _settings_among(names: list[str]) -> set[str]:
    known: set[str] = set()
    for start in range(0, len(names), ASKED_AT_ONCE):
        some = LaunchSetting.objects.filter(key__in=names[start : start + ASKED_AT_ONCE])
        known.update(some.values_list("key", flat=True))
    return known


def adopt(
    plan: AdoptionPlan, asked: Management, *, by: Any, now: datetime, detail: dict[str, Any], reason: str = ""
) -> Iterator[tuple[OriginShare, int]]:
    """Moves what the plan says, slice by slice; gives each share with how many of it were moved so far. At
    the end of a share fewer may have gone than were planned (gone meanwhile), never more.

    The audit entry is written before the first move: whatever breaks then, it stands there. Raises
    BrokerError.
    """
    operation = uuid4()
    _begin(plan, operation, by, now, detail, reason)
    crash.point("adopt: begun")
    for share in plan.going:
        moved = 0
        while moved < share.letters:
            wanted = min(SLICE, share.letters - moved)
            gone = move_of_queue(asked, plan.source, share.origin, dead_letter_queue(share.key), wanted)
            crash.point("adopt: moved a slice")
            moved += gone
            yield share, moved
            if gone < wanted:
                break


def _begin(
    plan: AdoptionPlan, operation: UUID, by: Any, now: datetime, detail: dict[str, Any], reason: str
) -> None:
    queues = [plan.source, *(dead_letter_queue(share.key) for share in plan.going)]
    LetterQueue.objects.filter(queue__in=queues).update(walked_at=None)
    counts = {"going": sum(share.letters for share in plan.going)}
    counts["staying"] = sum(share.letters for share in plan.staying)
    record(
        ADOPT,
        by=by,
        now=now,
        target=f"queue:{plan.source}",
        operation=operation,
        scope="all",
        reason=reason,
        counts=counts,
        detail={"settings": {share.key: share.letters for share in plan.going[:100]}, **detail},
    )
