"""The breaker of one setting as it stands: a row per server, the quorum, the open trip, and a sentence on all
that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.breaker.rules import ALONE_AFTER, NEEDED_OF_MANY
from agents.models import Activation, BreakerTrip, Interruption, LaunchSetting, Run, RunPhase, Spread
from agents.pages.states import RunRow, run_rows
from agents.pages.trips import cause_of_trip
from console.ui.amounts import number
from contract.breaker import same_limit

MOST_RUNS = 400
SHOWN_INTERRUPTIONS = 20


@dataclass(frozen=True, slots=True)
class QuorumState:
    """Holds how many servers must have given the setting up, who has, and who goes on."""

    needed: int
    interrupted: list[str]
    others: list[str]

    @property
    def text(self) -> str:
        text = ngettext("%(have)s of %(n)s server", "%(have)s of %(n)s servers", self.needed)
        return text % {"have": number(len(self.interrupted)), "n": number(self.needed)}


@dataclass(frozen=True, slots=True)
class BreakerVerdict:
    """`question` is what somebody at night asks; `since` an instant that belongs behind the text, if any."""

    question: str
    text: str
    tone: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """`rows`: the newest run on each server of `activation`, which is the latest one."""

    setting: LaunchSetting
    activation: Activation | None
    rows: list[RunRow]
    quorum: QuorumState
    trip: BreakerTrip | None
    interruptions: list[Interruption]
    answer: BreakerVerdict


def standing(setting: LaunchSetting, now: datetime) -> Standing:
    activation = setting.activations.order_by("-started_at").first()
    runs = newest_runs(activation)
    trip = setting.trips.filter(ended_at=None).select_related("ended_by", "group").first()
    found = setting.interruptions.select_related("server", "trip")[:SHOWN_INTERRUPTIONS]
    interruptions = list(found)
    stops = {stop.server_id: stop for stop in setting.server_stops.all()}
    rows = [
        replace(row, stop=stops.get(row.run.server_id))
        for row in run_rows(_as_interrupted(runs, interruptions), setting, now)
    ]
    quorum = _quorum(setting, rows)
    own = [each for each in interruptions if trip is not None and each.trip_id == trip.pk]
    return Standing(
        setting=setting,
        activation=activation,
        rows=rows,
        quorum=quorum,
        trip=trip,
        interruptions=interruptions,
        answer=breaker_verdict(setting, rows, quorum, trip, own),
    )


def newest_runs(activation: Activation | None) -> list[Run]:
    """The run with the highest epoch on each server: what counts there now."""
    if activation is None:
        return []
    newest: dict[str, Run] = {}
    for run in activation.runs.select_related("server").order_by("-epoch")[:MOST_RUNS]:
        newest.setdefault(run.server.name, run)
    return [newest[name] for name in sorted(newest)]


def _as_interrupted(runs: list[Run], interruptions: Sequence[Interruption]) -> list[Run]:
    """A run that was given up with the counts that did it: a heartbeat may have told of others before or
    since."""
    said = {each.run_id: each for each in reversed(interruptions)}
    for run in runs:
        if run.state == RunPhase.INTERRUPTED and (interruption := said.get(run.pk)):
            run.same_type, run.same_count, run.any_count = (
                interruption.same_type,
                interruption.same_count,
                interruption.any_count,
            )
    return runs


def _quorum(setting: LaunchSetting, rows: Sequence[RunRow]) -> QuorumState:
    """As the rule counts: a server where a person stopped a MANY setting says nothing of the others."""
    given_up = [
        row.run.server.name
        for row in rows
        if row.run.state == RunPhase.INTERRUPTED and not (row.stop and setting.spread == Spread.MANY)
    ]
    others = [row.run.server.name for row in rows if row.run.state != RunPhase.INTERRUPTED and row.run.wanted]
    return QuorumState(NEEDED_OF_MANY if setting.spread == Spread.MANY else 1, given_up, others)


def breaker_verdict(
    setting: LaunchSetting,
    rows: Sequence[RunRow],
    quorum: QuorumState,
    trip: BreakerTrip | None,
    interruptions: Sequence[Interruption],
) -> BreakerVerdict:
    """Returns why it is off, or why it is not off, in one sentence."""
    if not setting.enabled:
        return _why_off(setting, trip, interruptions)
    question = _("Why is the setting still enabled?")
    if quorum.interrupted:
        return BreakerVerdict(question, _interrupted_alone(quorum), "warn")
    if not rows:
        return BreakerVerdict(
            question,
            _(
                "The setting is enabled but is not running on any server yet, so there are no "
                "consecutive failures."
            ),
            "info",
        )
    nearest = max(rows, key=_nearness)
    if not nearest.run.any_count:
        return BreakerVerdict(question, _("No server has counted a failure since its last success."), "ok")
    return BreakerVerdict(question, _nearest(setting, nearest), "warn" if _nearness(nearest) >= 0.5 else "ok")


def _why_off(
    setting: LaunchSetting, trip: BreakerTrip | None, interruptions: Sequence[Interruption]
) -> BreakerVerdict:
    question = _("Why is the setting disabled?")
    if trip is not None:
        text = _("The breaker tripped: %(cause)s. The setting stays disabled until someone re-enables it.")
        return BreakerVerdict(question, text % {"cause": cause_of_trip(trip, interruptions)}, "bad", trip.at)
    if setting.disabled_by:
        text = _("%(person)s disabled the setting. The breaker did not trip.") % {
            "person": setting.disabled_by
        }
        return BreakerVerdict(question, text, "off", setting.state_since)
    if setting.disabled_reason:
        return BreakerVerdict(
            question,
            _("The setting's own breaker did not trip. The setting was disabled for this reason: %(why)s")
            % {"why": setting.disabled_reason},
            "off",
            None,
        )
    return BreakerVerdict(
        question, _("The setting has never been enabled, so the breaker could not trip."), "off", None
    )


def _interrupted_alone(quorum: QuorumState) -> str:
    if not quorum.others:
        return _interrupted_everywhere(quorum)
    text = ngettext(
        "The setting is interrupted on %(servers)s and %(others)s. It is disabled only after "
        "interruptions on %(needed)s servers.",
        "The setting is interrupted on %(servers)s and %(others)s. It is disabled only after "
        "interruptions on %(needed)s servers.",
        len(quorum.interrupted),
    )
    others = _("still running on %(others)s") % {"others": ", ".join(quorum.others)}
    facts = {
        "servers": ", ".join(quorum.interrupted),
        "needed": number(max(quorum.needed, 1)),
        "others": others,
    }
    return text % facts


def _interrupted_everywhere(quorum: QuorumState) -> str:
    text = ngettext(
        "The setting is interrupted on %(servers)s and is not running on any other server. It "
        "will be disabled unless another suitable server becomes available within %(seconds)s "
        "s.",
        "The setting is interrupted on %(servers)s and is not running on any other server. It "
        "will be disabled unless another suitable server becomes available within %(seconds)s "
        "s.",
        len(quorum.interrupted),
    )
    return text % {
        "servers": ", ".join(quorum.interrupted),
        "seconds": number(round(ALONE_AFTER.total_seconds())),
    }


def _nearness(row: RunRow) -> float:
    return max(row.run.same_count / row.same.limit, row.run.any_count / row.any.limit)


def _nearest(setting: LaunchSetting, row: RunRow) -> str:
    run, limit, m = row.run, same_limit(setting.breaker_m), setting.breaker_m
    facts = {
        "same": number(run.same_count),
        "limit": number(limit),
        "type": run.same_type or "—",
        "any": number(run.any_count),
        "m": number(m),
        "server": run.server.name,
    }
    counted = _(
        "%(server)s is closest to the threshold: %(same)s of %(limit)s consecutive %(type)s "
        "failures and %(any)s of %(m)s of any type."
    )
    missing = min(limit - run.same_count, m - run.any_count)
    if missing <= 0:
        return counted % facts
    if setting.spread == Spread.MANY:
        more = ngettext(
            "%(n)s more consecutive failure interrupts the setting on this server. The setting is "
            "disabled only after interruptions on two servers.",
            "%(n)s more consecutive failures interrupt the setting on this server. The setting is "
            "disabled only after interruptions on two servers.",
            missing,
        )
    else:
        more = ngettext(
            "%(n)s more consecutive failure disables the setting.",
            "%(n)s more consecutive failures disable the setting.",
            missing,
        )
    return f"{counted % facts} {more % {'n': number(missing)}}"
