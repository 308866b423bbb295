"""The breaker panel of a setting: how near each server is, which failures counted, what a trip did, and
why not; and the evidence of a trip on its page."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import BreakerTrip, Interruption, LaunchSetting, RunPhase, Timing
from agents.pages.breaker import Standing, standing
from agents.pages.states import RunRow
from agents.pages.trips import cause_of_trip, interruption_cause, quorum_text, trip_story
from agents.pools.rights import may, why_not
from console.ui.amounts import number
from console.ui.page import Panel, link
from console.ui.text import visible_words
from contract.messages import MAX_EVIDENCE
from failures.models import FailureProtocol
from failures.pages.protocols import VIEW
from failures.what_if import Failure, Step, Tally, Verdict, story

# Of all servers together, newest first; of one server on its strip; in the list that explains.
MOST_READ = 1000
MOST_SHOWN = 40
EXPLAINED = 12
# Lines of the story of a trip that are shown at once; a longer one is folded, the trip has a page of its own.
MOST_UNFOLDED = 8
# As many colours as the style sheet has; types beyond share the last.
COLOURS = 6
LETTERS = "ABCDEF"
# As `Failure` takes them.
READ = ("id", "occurred_at", "exception_type", "temporary", "counted", "successes_before", "message_key",
        "message_key_weak", "attempt", "outcome")  # fmt: skip

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """One failure on the strip. `kind`: its colour and letter, `look`: filled, hollow or faint; `gap` as a
    text. There may be many hundreds on a page."""

    step: Step
    kind: int
    look: str
    gap: str
    title: SafeString
    url: str

    @property
    def letter(self) -> str:
        return LETTERS[self.kind]


@dataclass(frozen=True, slots=True)
class ServerStrip:
    """`carried`: counted in an activation before this one. `left_out`: older failures that are not drawn.
    `resume`: where a person lets it go on, for a server that gave it up alone."""

    row: RunRow
    marks: list[Mark]
    left_out: bool
    carried: int
    resume: str


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A type in the legend: how many of the drawn failures are of it."""

    letter: str
    colour: int
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Explained:
    server: str
    step: Step
    why: str
    counts: bool


@dataclass(frozen=True, slots=True)
class BreakerState:
    """`steps`: what the breaker made of the failures of each newest run, oldest first."""

    stands: Standing
    steps: dict[Place, list[Step]]
    kinds: dict[str, int]
    strips: list[ServerStrip]


def breaker_state(setting: LaunchSetting, now: datetime) -> BreakerState:
    """Reads at most MOST_READ failures, however many there are."""
    stands = standing(setting, now)
    steps = _steps(setting, stands)
    kinds = _kinds(steps.values())
    strips = [
        _strip(setting, row, steps.get((row.run.server.name, row.run.epoch), []), kinds)
        for row in stands.rows
    ]
    return BreakerState(stands, steps, kinds, strips)


def breaker_panel(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    state = breaker_state(setting, timezone.now())
    stands, steps, strips = state.stands, state.steps, state.strips
    said = [(each, interruption_cause(each)) for each in reversed(stands.interruptions[:8])]
    chapters = trip_story(stands.trip, said, request.user) if stands.trip else []
    context = {
        "setting": setting,
        "stands": stands,
        "strips": strips,
        "legend": _legend(strips, state.kinds),
        "may_resume": may(request.user, "enable", setting),
        "why_not_resume": why_not(request.user, "enable", setting)
        if any(each.resume for each in strips)
        else "",
        "explained": _explained(steps),
        "said": said,
        "trip": stands.trip,
        "trip_cause": cause_of_trip(stands.trip, stands.interruptions) if stands.trip else "",
        "trip_quorum": quorum_text(stands.trip) if stands.trip else "",
        "story": chapters,
        "long_story": sum(len(each.given_up) + 1 + len(each.effects) for each in chapters) > MOST_UNFOLDED,
    }
    return {"title": _("Breaker"), "template": "failures/breaker.html", "context": context}


def _steps(setting: LaunchSetting, stands: Standing) -> dict[Place, list[Step]]:
    """The story of each newest run, oldest first, from the latest failures of the activation."""
    if stands.activation is None:
        return {}
    rows = FailureProtocol.objects.filter(setting=setting, activation_uuid=stands.activation.pk)
    found: dict[Place, list[Failure]] = defaultdict(list)
    newest = rows.order_by("-occurred_at", "-number").values_list("server_name", "epoch", *READ)
    for server, epoch, *failure in newest[:MOST_READ]:
        found[server, epoch].append(Failure(*failure))
    wanted = {(row.run.server.name, row.run.epoch) for row in stands.rows}
    return {
        place: story(
            reversed(found[place]),
            Tally(setting.breaker_m, count_once=setting.count_once),
        )
        for place in found
        if place in wanted
    }


def _kinds(stories: Iterable[list[Step]]) -> dict[str, int]:
    """Type → colour: the most frequent first."""
    counts = Counter(step.failure.exception_type for steps in stories for step in steps[-MOST_SHOWN:])
    return {kind: min(index, COLOURS - 1) for index, (kind, _count) in enumerate(counts.most_common())}


def _strip(setting: LaunchSetting, row: RunRow, steps: list[Step], kinds: dict[str, int]) -> ServerStrip:
    shown = steps[-MOST_SHOWN:]
    in_a_row = steps[-1].counts.any if steps else 0
    began_anew = any(step.gap for step in steps)
    carried = 0 if began_anew or len(steps) >= MOST_READ else max(0, row.run.any_count - in_a_row)
    return ServerStrip(
        row=row,
        marks=[_mark(step, kinds) for step in shown],
        left_out=len(steps) > len(shown),
        carried=carried if setting.timing == Timing.DELAYED else 0,
        resume=_resume(setting, row),
    )


def _resume(setting: LaunchSetting, row: RunRow) -> str:
    """Only while the setting is on: enabling begins anew everywhere."""
    if not setting.enabled or row.run.state != RunPhase.INTERRUPTED or row.stop:
        return ""
    return link("setting_resume", setting.key, row.run.server.name)


LOOKS = {
    Verdict.COUNTED: "full",
    Verdict.TEMPORARY: "hollow",
    Verdict.NOT_THE_AGENT: "hollow",
    Verdict.NOTED: "hollow",
}


def _mark(step: Step, kinds: dict[str, int]) -> Mark:
    gap = ""
    if step.gap:
        gap = ngettext("%(n)s processed successfully", "%(n)s processed successfully", step.gap) % {
            "n": number(step.gap)
        }
    failure = step.failure
    title, url = (
        visible_words(f"{failure.exception_type[:80]}: {verdict_text(step)}"),
        link("protocol", failure.id),
    )
    return Mark(step, kinds[failure.exception_type], LOOKS.get(step.verdict, "faint"), gap, title, url)


def verdict_text(step: Step) -> str:
    if step.verdict is Verdict.COUNTED:
        return _("counted; consecutive failures: %(same)s of this type, %(any)s of any type") % {
            "same": number(step.counts.same),
            "any": number(step.counts.any),
        }
    words = {
        Verdict.WIPED: _("count reset: a later message was processed successfully"),
        Verdict.TEMPORARY: _("temporary: not counted, does not reset the count"),
        Verdict.SAME_MESSAGE: _("repeat of the same message: counted once"),
        Verdict.NOT_THE_AGENT: _("not counted: the server's container crashed, not the agent's code"),
        Verdict.NOTED: _("recorded only, not a failure"),
    }
    return words[step.verdict]


def _legend(strips: list[ServerStrip], kinds: dict[str, int]) -> list[LegendEntry]:
    counts = Counter(mark.step.failure.exception_type for strip in strips for mark in strip.marks)
    return [
        LegendEntry(LETTERS[kinds[name]], kinds[name], name, count) for name, count in counts.most_common()
    ]


def _explained(steps: dict[Place, list[Step]]) -> list[Explained]:
    """The latest failures of every server, newest first, each with why it counts or does not."""
    every = [(step, server) for (server, _epoch), told in steps.items() for step in told[-EXPLAINED:]]
    every.sort(key=lambda each: each[0].failure.at, reverse=True)
    return [
        Explained(server, step, verdict_text(step), step.verdict is Verdict.COUNTED)
        for step, server in every[:EXPLAINED]
    ]


# -- the evidence of a trip ----------------------------------------------------------------------------------
# The failures that counted, of each server that gave the setting up, equal ones in one row; and where in
# the code most of them lie.


MOST_INTERRUPTIONS = 20
# Of each row of equal failures, the latest.
SHOWN_OF_EQUAL = 25


@dataclass(frozen=True, slots=True)
class EqualFailures:
    """Failures of one error group, oldest first; they were raised at one place. `left_out`: of `count`."""

    protocols: Sequence[FailureProtocol]
    count: int

    @property
    def latest(self) -> FailureProtocol:
        return self.protocols[-1]

    @property
    def left_out(self) -> int:
        return self.count - len(self.protocols)

    @property
    def attempts(self) -> str:
        """`attempts 1–2`, of those that are shown."""
        every = [protocol.attempt for protocol in self.protocols]
        first, last = min(every), max(every)
        if first == last:
            return _("attempt %(n)s") % {"n": number(first)}
        return _("attempts %(first)s–%(last)s") % {"first": number(first), "last": number(last)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """`gone`: protocols that were named and are not here (any more)."""

    interruption: Interruption
    equal: list[EqualFailures]
    gone: int


def trip_panel(request: HttpRequest, trip: BreakerTrip) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    rows = [_evidence(each) for each in _interruptions(trip)]
    return {"title": _("Counted failures"), "template": "failures/evidence.html", "context": {"rows": rows}}


def location_panel(request: HttpRequest, trip: BreakerTrip) -> Panel | None:
    """Of the error group with the most failures that counted; nothing where none of them is here."""
    if not request.user.has_perm(VIEW):
        return None
    named = [each for one in _interruptions(trip) for each in _ids(one.evidence)]
    equal = equal_failures(_protocols(named[-MAX_EVIDENCE:]))
    if not equal:
        return None
    return {"title": _("Location"), "template": "failures/location.html", "context": {"most": equal[0]}}


def equal_failures(protocols: Iterable[FailureProtocol]) -> list[EqualFailures]:
    """`protocols`: oldest first. The group with the most failures comes first; of equal ones the later."""
    found: dict[str, list[FailureProtocol]] = defaultdict(list)
    for protocol in protocols:
        found[protocol.fingerprint].append(protocol)
    groups = [EqualFailures(alike[-SHOWN_OF_EQUAL:], len(alike)) for alike in found.values()]
    return sorted(groups, key=lambda group: (group.count, group.latest.occurred_at), reverse=True)


def _interruptions(trip: BreakerTrip) -> list[Interruption]:
    rows = trip.interruptions.filter(effective=True).select_related("server").order_by("received_at")
    return list(rows[:MOST_INTERRUPTIONS])


def _evidence(interruption: Interruption) -> Evidence:
    ids = _ids(interruption.evidence)
    protocols = _protocols(ids)
    return Evidence(interruption, equal_failures(protocols), len(ids) - len(protocols))


def _protocols(ids: Sequence[UUID]) -> list[FailureProtocol]:
    found = FailureProtocol.objects.filter(pk__in=ids).defer("traceback", "properties")
    return list(found.order_by("occurred_at", "number"))


def _ids(stored: object) -> list[UUID]:
    """What is no id is no evidence."""
    ids = []
    for each in stored[:MAX_EVIDENCE] if isinstance(stored, list) else []:
        try:
            ids.append(UUID(str(each)))
        except ValueError:
            continue
    return ids
