"""What keeps protocols that the rule lets go. Others register here; each answer is asked for anew with every
chunk.

An archive registers as one: it keeps what is in no verified block of it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from contract.outcomes import Outcome
from failures.models import FailureProtocol
from failures.protocols.messages import LOOK_BACK


@dataclass(frozen=True, slots=True)
class Picked:
    """A protocol that the rule lets go. `at`: when it had both occurred and been received, `received_at`: by
    our clock; `place`: where it lay in its table (`lying`)."""

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
Keeper = Callable[[Sequence[Picked], datetime], Collection[UUID]]
# Before which instant it keeps nothing, now; None: it has to look at each.
Quiet = Callable[[datetime], datetime | None]

_keepers: dict[str, Keeper] = {}
_quiet: dict[str, Quiet] = {}


def _looks_at_each(now: datetime) -> None:
    return None


def register(reason: str, keeper: Keeper, quiet: Quiet = _looks_at_each) -> None:
    """`reason` is a stable word, by which runs and pages tell of what was kept."""
    _keepers[reason], _quiet[reason] = keeper, quiet


def unregister(reason: str) -> None:
    _keepers.pop(reason, None)
    _quiet.pop(reason, None)


# Of a kind that an archive knows: what was received (closed, ended) before this instant is safe there; None:
# nothing of it is kept for an archive.
Safe = Callable[[str, datetime], datetime | None]
_safe: list[Safe] = []


def register_safe(safe: Safe) -> None:
    if safe not in _safe:
        _safe.append(safe)


def safe_before(kind: str, now: datetime) -> datetime | None:
    """Before which instant things of this kind may go; None: whenever."""
    known = [instant for each in _safe if (instant := each(kind, now)) is not None]
    return min(known, default=None)


def quiet_before(now: datetime) -> datetime | None:
    """Of what had both occurred and been received before it nobody keeps anything; None: each is to be looked
    at."""
    earliest = now
    for quiet in _quiet.values():
        instant = quiet(now)
        if instant is None:
            return None
        earliest = min(earliest, instant)
    return earliest


def kept_of(picked: Sequence[Picked], now: datetime) -> dict[UUID, str]:
    """{protocol: reason}; of several reasons the first that was registered."""
    kept: dict[UUID, str] = {}
    for reason, keeper in _keepers.items():
        for each in keeper(picked, now) if picked else ():
            kept.setdefault(each, reason)
    return kept


# -- what this app itself still needs of protocols that the rule lets go -------------------------------------


def attempts_are_counted_since(now: datetime) -> datetime:
    return now - LOOK_BACK


def counted_attempts(picked: Sequence[Picked], now: datetime) -> Collection[UUID]:
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
