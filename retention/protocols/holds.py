"""Describes what keeps protocols that the rule lets go: each hold is asked again with every chunk."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Max, Min

from console.processes import last_heartbeat
from contract.outcomes import Outcome
from dlq.models import DeadLetter, LetterState
from failures.models import FailureProtocol
from failures.protocols.messages import LOOK_BACK
from insights.archive.planning import archived_before, unsettled_blocks
from insights.archive.readiness import is_on
from insights.models.archive import ArchiveBlock


@dataclass(frozen=True, slots=True)
class Candidate:
    """A protocol that the rule lets go. `at`: when it had both occurred and been received, `received_at`: by
    our clock; `place`: where it lay in its table (`row_locations`)."""

    id: UUID
    activation_id: UUID | None
    at: datetime
    setting_key: str
    message_key: str
    message_key_weak: bool
    last_attempt: bool
    temporary: bool
    received_at: datetime
    place: str


# Which of these must stay, now.
Keeper = Callable[[Sequence[Candidate], datetime], Collection[UUID]]
# Before which instant it keeps nothing, now; None: it has to look at each.
Quiet = Callable[[datetime], datetime | None]


def held_before(now: datetime) -> datetime | None:
    """Of what had both occurred and been received before it nobody keeps anything; None: each is to be looked
    at."""
    earliest = now
    for hold in HOLDS.values():
        instant = hold.nothing_before(now)
        if instant is None:
            return None
        earliest = min(earliest, instant)
    return earliest


def held_back(picked: Sequence[Candidate], now: datetime) -> dict[UUID, str]:
    """{protocol: reason}; of several reasons the first."""
    kept: dict[UUID, str] = {}
    for reason, hold in HOLDS.items():
        for each in hold.keeps(picked, now) if picked else ():
            kept.setdefault(each, reason)
    return kept


# -- what this app itself still needs of protocols that the rule lets go -------------------------------------


def attempts_are_counted_since(now: datetime) -> datetime:
    return now - LOOK_BACK


def counted_attempts(picked: Sequence[Candidate], now: datetime) -> Collection[UUID]:
    """Protocols of messages whose KMA died lately: what servers are told of their attempts is counted from
    them. A day later they go."""
    since = attempts_are_counted_since(now)
    young = [each for each in picked if each.at >= since and each.message_key and not each.message_key_weak]
    if not young:
        return ()
    keys = {each.message_key for each in young}
    died = FailureProtocol.objects.filter(
        message_key__in=keys, outcome=Outcome.KMA_DIED.value, occurred_at__gte=since
    )
    struck = set(died.order_by().values_list("setting_key", "message_key"))
    return {each.id for each in young if (each.setting_key, each.message_key) in struck}


# The feed gives its heartbeat when it has stored what there was; a letter may be on its way for so long.
ON_ITS_WAY = timedelta(minutes=5)


def of_dead_letters(picked: Sequence[Candidate], now: datetime) -> Collection[UUID]:
    """Where the site has chosen so: those of messages that are still dead letters, until they are given back,
    handled or discarded."""
    if not settings.MA_RETENTION_KEEP_DEAD:
        return ()
    keys = {each.message_key for each in picked if each.message_key}
    dead = DeadLetter.objects.filter(state=LetterState.DEAD, message_key__among=keys)
    cases = set(dead.order_by().values_list("setting_key", "message_key"))
    return {each.id for each in picked if each.message_key and (each.setting_key, each.message_key) in cases}


def dead_letters_keep_nothing_before(now: datetime) -> datetime | None:
    return None if settings.MA_RETENTION_KEEP_DEAD else now


def indexed_before(now: datetime) -> datetime | None:
    """Letters of before are stored; None while the feed has given no heartbeat."""
    at = last_heartbeat("feed")
    return None if at is None else at - ON_ITS_WAY


def before_the_index(picked: Sequence[Candidate], now: datetime) -> Collection[UUID]:
    """The last attempts of messages whose letters the feed cannot have stored yet: its rows take their copy
    of the last failure from them."""
    last = [each for each in picked if each.last_attempt]
    if not last:
        return ()
    indexed = indexed_before(now)
    return {each.id for each in last if indexed is None or each.at > indexed}


def not_archived(picked: Sequence[Candidate], now: datetime) -> Collection[UUID]:
    if not is_on():
        return ()
    line = ArchiveBlock.objects.filter(kind="protocols").aggregate(first=Min("first"), last=Max("last"))
    if line["first"] is None:
        return {each.id for each in picked}
    unsettled = list(unsettled_blocks("protocols").values_list("first", "last"))

    def is_kept(at: datetime) -> bool:
        if not line["first"] <= at < line["last"]:
            return True
        return any(first <= at < last for first, last in unsettled)

    return {each.id for each in picked if is_kept(each.received_at)}


def protocols_archived_before(now: datetime) -> datetime | None:
    """Of protocols that were received before it none is kept."""
    return archived_before("protocols", now) or now


@dataclass(frozen=True, slots=True)
class Hold:
    """`nothing_before`: before which instant it keeps nothing, now; None: it has to look at each."""

    keeps: Keeper
    nothing_before: Quiet


# By stable words, by which runs and pages tell of what was kept.
HOLDS = {
    "attempts": Hold(counted_attempts, attempts_are_counted_since),
    "archive": Hold(not_archived, protocols_archived_before),
    "index": Hold(before_the_index, indexed_before),
    "dead": Hold(of_dead_letters, dead_letters_keep_nothing_before),
}
