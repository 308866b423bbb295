"""Decides what would happen if a job began now: how many go, what is left out and why, what to think about
first. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dlq.models import Action, InOrder, LetterState
from dlq.models.replay import DELIVERING
from dlq.replay.preflight.handling import Difference

# Stable words, as in `ReplayJob.skipped` and `ReplayItem.why`.
GONE = "gone"
HELD = "held"
OUTSTANDING = "outstanding"
MUTED = "muted"
OFTEN = "given_back_often"
COPY_SENT = "edited_copy_sent"
NO_ID = "no_id"
OTHER_BROKER = "other_broker"
NO_SUBSCRIPTION = "no_subscription"
# What has to be acknowledged before a job begins.
OTHER_DESTINATION = "other_destination"
DISABLED = "disabled"
TRIPPED = "tripped"
STOPPING = "stopping"
STOPPING_UNKNOWN = "stopping_unknown"
NO_CONSUMER = "no_consumer"
SAME_VERSION = "same_version"
ORDERED = "ordered"
HOLD = "hold"
OTHER_HOLDS = "held_by_another"
LADDER = "ladder_advised"
CODES = (
    OTHER_DESTINATION,
    DISABLED,
    TRIPPED,
    STOPPING,
    STOPPING_UNKNOWN,
    NO_CONSUMER,
    SAME_VERSION,
    ORDERED,
    HOLD,
    OTHER_HOLDS,
    LADDER,
    MUTED,
    OFTEN,
    COPY_SENT,
)

# So many dead letters of one kind: try a few of them first.
MANY = 25
# Above this the number is typed.
TYPED_ABOVE = 1000
EXAMPLES = 20


# -- which dead letters of a scope are left out, and why -----------------------------------------------------


# What brings a dead letter before its agent again. A fault that is known would only fail again.
RETURNING = (Action.GIVE_BACK, Action.EDIT)


class Letter(NamedTuple):
    """Holds what is read of each dead letter of a scope; small, for there may be 10,000 of them in memory."""

    pk: int
    state: str
    number: int
    node_id: str
    setting_key: str
    fingerprint: str
    message_key: str
    chapter: int
    agent_version: str
    outstanding: bool
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """`node_id`: the broker that is asked, empty while nobody knows. `muted_*`: faults that are known now,
    none of them empty. `returns`: how often messages were replayed without success, of those that may have
    been too often. `copied`: dead letters in the trash whose edited copy was replayed."""

    action: str
    one: bool = False
    node_id: str = ""
    often: int = 5
    muted_fingerprints: frozenset[str] = frozenset()
    muted_messages: frozenset[str] = frozenset()
    muted_all: bool = False
    returns: dict[tuple[str, str], int] = field(default_factory=dict)
    copied: frozenset[int] = frozenset()

    def why_not(self, letter: Letter) -> str:
        """Returns why this dead letter is left out; empty: it goes. What a person names alone goes although
        it is muted, was replayed often or has a copy: that is a warning then."""
        if letter.state != LetterState.DEAD:
            return GONE
        if letter.number < 0:
            return NO_ID
        if self.node_id and letter.node_id != self.node_id:
            return OTHER_BROKER
        if letter.outstanding:
            return OUTSTANDING
        return "" if self.one else self.doubt(letter)

    def doubt(self, letter: Letter) -> str:
        """Returns why somebody should think twice before this dead letter comes before its agent again."""
        if self.action == Action.PUT_BACK and letter.pk in self.copied:
            return COPY_SENT
        if self.action in RETURNING and self._muted(letter):
            return MUTED
        returned = self.returns.get((letter.setting_key, letter.message_key), 0)
        return OFTEN if self.action == Action.GIVE_BACK and returned > self.often else ""

    def _muted(self, letter: Letter) -> bool:
        return (
            self.muted_all
            or letter.message_key in self.muted_messages
            or letter.fingerprint in self.muted_fingerprints
        )


# -- what would happen with the others -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """Says where the dead letters go. `exists`: its queue exists. `consumers` None: the broker does not tell.
    `versions`: of its agent, as the live servers of its pool offer it. `newer` waits in the subscription
    already (None: unknown). `differences` from the setting that they leave, where its destination is another
    one. `held`: another replay holds it."""

    queue: str
    setting_key: str = ""
    exists: bool = True
    enabled: bool = True
    tripped: bool = False
    consumers: int | None = None
    servers: int = 0
    versions: frozenset[str] = frozenset()
    ordered: bool = False
    newer: int | None = None
    differences: tuple[Difference, ...] = ()
    held: bool = False


@dataclass(frozen=True, slots=True)
class Way:
    """Says how the dead letters are to go there: on a ladder, in the order of publishing, and for how long
    the subscription is held for that at most."""

    ladder: bool = False
    in_order: str = ""
    hold_minutes: int = 0


@dataclass(frozen=True, slots=True)
class Warning:
    """`n` of `of` dead letters, or what else the number of this code is."""

    code: str
    n: int = 0
    of: int = 0


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """`seen` dead letters of the scope were looked at. `about`: there are more than these, of which nothing
    is said: at least `going` would go, and no more than `total`. `skipped` and `examples` by reason are of
    those that were looked at. `newest`: the row of the newest of them (0: there is none); a job that ends
    there takes nothing that dies later."""

    seen: int
    total: int
    going: int
    about: bool
    skipped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, tuple[int, ...]] = field(default_factory=dict)
    warnings: tuple[Warning, ...] = ()
    first: tuple[int, ...] = ()
    differences: tuple[Difference, ...] = ()
    newest: int = 0

    @property
    def typed(self) -> bool:
        """Returns whether the number has to be typed."""
        return self.going > TYPED_ABOVE or (self.about and self.going > 0)

    @property
    def at_most(self) -> int:
        """Returns how many could go: where not all were looked at, all that there are."""
        return self.total if self.about else self.going

    @property
    def advises_ladder(self) -> bool:
        return any(warning.code == LADDER for warning in self.warnings)

    def missing(self, acknowledged: Iterable[str]) -> tuple[Warning, ...]:
        known = frozenset(acknowledged)
        return tuple(warning for warning in self.warnings if warning.code not in known)


def judge(
    letters: Sequence[tuple[Letter, str]],
    policy: Policy,
    place: ReplayTarget,
    *,
    total: int | None,
    way: Way = Way(),
) -> PreflightResult:
    """`letters` with why each is left out (empty: it goes), the newest first. `total` None: these are all;
    else how many there are by whoever counted them."""
    why = [(letter, reason or ("" if place.exists else NO_SUBSCRIPTION)) for letter, reason in letters]
    going = [letter for letter, reason in why if not reason]
    skipped = Counter(reason for _letter, reason in why if reason)
    seen = len(why)
    every = seen if total is None else max(total, seen)
    return PreflightResult(
        seen=seen,
        total=every,
        going=len(going),
        about=total is not None,
        skipped=dict(skipped),
        examples={reason: _examples(why, reason) for reason in skipped},
        warnings=tuple(_warnings(going, policy, place, way)) if going else (),
        first=tuple(letter.pk for letter in going[:EXAMPLES]),
        differences=place.differences,
        newest=letters[0][0].pk if letters else 0,
    )


def _examples(why: Iterable[tuple[Letter, str]], wanted: str) -> tuple[int, ...]:
    found = (letter.pk for letter, reason in why if reason == wanted)
    return tuple(pk for pk, _n in zip(found, range(EXAMPLES), strict=False))


def _warnings(going: Sequence[Letter], policy: Policy, place: ReplayTarget, way: Way) -> Iterable[Warning]:
    if policy.action in DELIVERING:
        yield from _of_delivery(going, policy, place, way)
    if policy.one:
        yield from (
            Warning(doubt, n=1, of=1) for doubt in {policy.doubt(letter) for letter in going} if doubt
        )


def _of_delivery(going: Sequence[Letter], policy: Policy, place: ReplayTarget, way: Way) -> Iterable[Warning]:
    if place.differences:
        yield Warning(OTHER_DESTINATION, n=len(place.differences))
    if place.tripped:
        yield Warning(TRIPPED)
    elif not place.enabled:
        yield Warning(DISABLED)
    elif place.consumers == 0 or (place.consumers is None and not place.servers):
        yield Warning(NO_CONSUMER)
    yield from _stopping(place)
    if policy.action == Action.GIVE_BACK:
        yield from _same_version(going, place)
    yield from _order(place, way)
    if policy.action != Action.EDIT or not policy.one:
        yield from _ladder(going, way.ladder)


def _stopping(place: ReplayTarget) -> Iterable[Warning]:
    """Disabled is a wish until every consumer has closed. `n`: how many are open."""
    if place.enabled:
        return
    if place.consumers is None:
        yield Warning(STOPPING_UNKNOWN)
    elif place.consumers:
        yield Warning(STOPPING, n=place.consumers)


def _same_version(going: Sequence[Letter], place: ReplayTarget) -> Iterable[Warning]:
    """Nothing was mended since they failed: only where a dead letter knows its version and servers tell
    theirs."""
    same = sum(1 for letter in going if letter.agent_version and place.versions == {letter.agent_version})
    if same:
        yield Warning(SAME_VERSION, n=same, of=len(going))


def _order(place: ReplayTarget, way: Way) -> Iterable[Warning]:
    """Of a hold `n` is how many minutes it lasts at most, `of` what waits meanwhile."""
    if way.in_order == InOrder.AHEAD:
        yield Warning(HOLD, n=way.hold_minutes, of=place.newer or 0)
    elif place.ordered:
        yield Warning(ORDERED, n=place.newer or 0)
    if place.held:
        yield Warning(OTHER_HOLDS)


def _ladder(going: Sequence[Letter], ladder: bool) -> Iterable[Warning]:
    kinds = Counter(letter.fingerprint for letter in going if letter.fingerprint)
    for _kind, most in kinds.most_common(1):
        if not ladder and most >= MANY and most * 2 >= len(going):
            yield Warning(LADDER, n=most, of=len(going))
