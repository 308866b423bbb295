"""Describes how states look: icon + word + colour, always the three together."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.text import format_lazy
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agents.activations.queries import OpenRun, withheld_runs
from agents.models import (
    Activation,
    ActivationState,
    BreakerTrip,
    Duty,
    GroupMember,
    LaunchSetting,
    ProvisionState,
    Run,
    RunPhase,
    Schedule,
    Server,
    ServerState,
    ServerStop,
    Timing,
)
from agents.models.activation import OPEN_ACTIVATIONS
from agents.provisioning.drain import DrainEstimate
from console.ui import amounts
from console.ui.amounts import number
from console.ui.page import Button, Fact, StateLabel
from contract.breaker import same_limit


@dataclass(frozen=True, slots=True)
class SettingFacts:
    """Holds what a setting's state is told from beside its runs. `started`: an activation of it is open.
    `tripped`: its breaker switched it off and nobody has switched it on again. `member`: a group starts it.
    `with_group`: a trip of a member switched its group off. `scheduled`: it has a schedule of its own.
    `withheld`: it is enabled, and its servers are not sent it."""

    started: bool = True
    tripped: bool = False
    member: bool = False
    with_group: bool = False
    scheduled: bool = False
    withheld: bool = False


def stopping_label(setting: LaunchSetting, consumers: int | None) -> StateLabel | None:
    """Returns the label of a disabled setting of which the broker still counts consumers: disabled is not
    stopped."""
    if setting.enabled or not consumers:
        return None
    text = ngettext("stopping, %(n)s consumer open", "stopping, %(n)s consumers open", consumers)
    return StateLabel(text % {"n": number(consumers)}, "warn", "wait")


def setting_label(
    setting: LaunchSetting, open_runs: list[OpenRun], now: datetime, facts: SettingFacts = SettingFacts()
) -> StateLabel:
    """Returns what an operator needs first: is it off, can it run, does it run."""
    if setting.provision_state == ProvisionState.FAILED:
        return StateLabel(_("not provisioned"), "bad", "warn")
    if not setting.enabled:
        return (
            StateLabel(_("disabled by breaker"), "bad", "off")
            if facts.tripped
            else StateLabel(_("disabled"), "off", "off")
        )
    if facts.withheld:
        return StateLabel(_("not sent to its servers"), "bad", "warn")
    if not facts.started:
        return _not_started(setting, facts)
    wanted = [run for run in open_runs if run.wanted]
    if not wanted:
        return _nothing_wanted(open_runs)
    if any(run.problems or run.blocked for run in wanted):
        return StateLabel(_("failing"), "bad", "warn")
    if all(run.server.state(now) is not ServerState.ALIVE for run in wanted):
        return StateLabel(_("server offline"), "bad", "silent")
    if any(at_work(run, setting) for run in wanted):
        return StateLabel(_("running"), "ok", "play")
    return StateLabel(_("starting"), "info", "wait")


def _not_started(setting: LaunchSetting, facts: SettingFacts) -> StateLabel:
    if facts.member:
        return StateLabel(_("idle (group schedule)"), "info", "wait")
    if setting.timing == Timing.DELAYED:
        return StateLabel(
            _("idle (schedule)") if facts.scheduled else _("idle (manual start)"), "info", "wait"
        )
    if not setting.takes_messages:
        return StateLabel(_("completed"), "info", "ok")
    return StateLabel(_("waiting for a server"), "warn", "wait")


def _nothing_wanted(open_runs: list[OpenRun]) -> StateLabel:
    if any(run.state == RunPhase.INTERRUPTED for run in open_runs):
        return StateLabel(_("interrupted"), "bad", "bad")
    if open_runs:
        return StateLabel(_("ending"), "info", "wait")
    return StateLabel(_("waiting for a server"), "warn", "wait")


def at_work(run: OpenRun, setting: LaunchSetting) -> bool:
    """A standalone agent has no connection to the broker."""
    return run.state == RunPhase.RUNNING and (run.connected or not setting.takes_messages)


PROVISIONED: dict[str, StateLabel] = {
    ProvisionState.PENDING: StateLabel(ProvisionState.PENDING.label, "info", "wait"),
    ProvisionState.READY: StateLabel(ProvisionState.READY.label, "ok", "ok"),
    ProvisionState.FAILED: StateLabel(ProvisionState.FAILED.label, "bad", "warn"),
}
SERVERS: dict[str, StateLabel] = {
    ServerState.NEW: StateLabel(ServerState.NEW.label, "off", "new"),
    ServerState.ALIVE: StateLabel(ServerState.ALIVE.label, "ok", "ok"),
    ServerState.SILENT: StateLabel(ServerState.SILENT.label, "bad", "silent"),
}
ACTIVATIONS: dict[str, StateLabel] = {
    ActivationState.PENDING: StateLabel(ActivationState.PENDING.label, "warn", "wait"),
    ActivationState.RUNNING: StateLabel(ActivationState.RUNNING.label, "ok", "play"),
    ActivationState.SUCCEEDED: StateLabel(ActivationState.SUCCEEDED.label, "ok", "ok"),
    ActivationState.FAILED: StateLabel(ActivationState.FAILED.label, "bad", "bad"),
    ActivationState.INTERRUPTED: StateLabel(ActivationState.INTERRUPTED.label, "bad", "bad"),
    ActivationState.STOPPED: StateLabel(ActivationState.STOPPED.label, "off", "off"),
}
RUNS: dict[str, StateLabel] = {
    RunPhase.WANTED: StateLabel(RunPhase.WANTED.label, "info", "wait"),
    RunPhase.STARTING: StateLabel(RunPhase.STARTING.label, "info", "wait"),
    RunPhase.RUNNING: StateLabel(RunPhase.RUNNING.label, "ok", "play"),
    RunPhase.DRAINING: StateLabel(RunPhase.DRAINING.label, "warn", "wait"),
    RunPhase.FINISHED: StateLabel(RunPhase.FINISHED.label, "off", "ok"),
    RunPhase.FAILED: StateLabel(RunPhase.FAILED.label, "bad", "bad"),
    RunPhase.INTERRUPTED: StateLabel(RunPhase.INTERRUPTED.label, "bad", "bad"),
    RunPhase.LOST: StateLabel(RunPhase.LOST.label, "bad", "silent"),
}


DUTIES: dict[str, StateLabel] = {
    Duty.ACTIVE: StateLabel(Duty.ACTIVE.label, "ok", "ok"),
    Duty.CORDONED: StateLabel(Duty.CORDONED.label, "warn", "pause"),
    Duty.DRAINING: StateLabel(Duty.DRAINING.label, "warn", "down"),
}


def server_label(server: Server, now: datetime) -> StateLabel:
    return SERVERS[server.state(now)]


# -- when a setting runs, and when an activation of it ends --------------------------------------------------


def when(setting: LaunchSetting) -> list[Fact]:
    facts = [Fact(gettext("Timing"), setting.get_timing_display(), _follows(setting))]
    if setting.timing == Timing.DELAYED and setting.takes_messages:
        facts += _drained(setting)
    return facts


def _follows(setting: LaunchSetting) -> str:
    if setting.timing == Timing.DELAYED:
        return _delayed(setting)
    if not setting.takes_messages:
        if setting.enabled:
            return gettext(
                "The setting runs until it is disabled. If the agent ends earlier, the setting waits "
                "for “Run now”."
            )
        return gettext("The setting is disabled and does not run.")
    if setting.enabled:
        return gettext("The setting processes messages as they arrive until it is disabled.")
    return gettext("The setting is disabled. Messages wait in its subscription until the next activation.")


def _delayed(setting: LaunchSetting) -> str:
    if not setting.enabled:
        return gettext("The setting is disabled, so its schedule does not start it.")
    if setting.takes_messages:
        return gettext("Each run processes the messages waiting in the subscription, then ends.")
    return gettext("Each run calls the agent once and ends when the agent returns or fails.")


def _drained(setting: LaunchSetting) -> list[Fact]:
    idle, wait = amounts.duration(setting.drain_idle_seconds), amounts.duration(setting.drain_wait_seconds)
    limited = setting.drain_limit_messages or setting.drain_limit_minutes
    when = (
        gettext("when the queue has been empty for %(time)s")
        if limited
        else gettext("%(time)s after all messages that were waiting at the start have left the queue")
    )
    facts = [
        Fact(
            gettext("Ends"),
            when % {"time": idle},
            gettext("Messages that arrive later are processed too, up to the limit.")
            if limited
            else gettext("Messages that arrive later wait for the next start."),
        ),
        Fact(
            gettext("Delayed messages"),
            gettext("the run waits up to %(time)s for them") % {"time": wait},
            gettext("If they do not arrive in time, the run ends with an error."),
        ),
    ]
    if setting.drain_limit_messages:
        most = gettext("messages per server: %(n)s") % {"n": amounts.number(setting.drain_limit_messages)}
        facts.append(Fact(gettext("At most"), most))
    if setting.drain_limit_minutes:
        facts.append(Fact(gettext("At most"), amounts.duration(60 * setting.drain_limit_minutes)))
    return facts


# -- when the backlog of a subscription will be gone ---------------------------------------------------------

# What is less than this much work for its consumers is no backlog.
LEAST_BACKLOG_SECONDS = 60.0
LONGEST_DRAIN_SECONDS = 30 * 86_400.0


def drain_text(drain: DrainEstimate | None) -> str:
    """Says when the backlog will be gone; empty where there is none, or where nobody knows."""
    if drain is None or drain.work_seconds < LEAST_BACKLOG_SECONDS:
        return ""
    if not drain.rate_out:
        return gettext("nothing is being processed") if drain.depth else ""
    if drain.seconds is None or drain.seconds > LONGEST_DRAIN_SECONDS:
        return gettext("not shrinking")
    return gettext("will drain in about %(time)s") % {
        "time": amounts.coarse(timedelta(seconds=drain.seconds))
    }


def drain_line(drain: DrainEstimate | None) -> tuple[str, str]:
    """Returns the same, and the rates that it follows from."""
    said = drain_text(drain)
    if drain is None or not said:
        return "", ""
    text = gettext("arriving: %(incoming)s/min, leaving: %(outgoing)s/min")
    rates = {"incoming": drain.rate_in, "outgoing": drain.rate_out}
    return said, text % {name: amounts.number(round(60 * rate)) for name, rate in rates.items()}


# -- rows that several pages show, read in few queries -------------------------------------------------------


def facts_of(settings: Iterable[int]) -> dict[int, SettingFacts]:
    """Returns whether each was started, was switched off by its breaker, is in a group, has a schedule, is
    withheld.

    Five queries."""
    wanted = list(settings)
    started = Activation.objects.filter(setting__in=wanted, state__in=OPEN_ACTIVATIONS)
    trips = list(BreakerTrip.objects.filter(ended_at=None).values_list("setting", "group"))
    tripped, groups = {setting for setting, _group in trips}, {group for _setting, group in trips if group}
    running = set(started.order_by().values_list("setting", flat=True))
    group_of = dict(GroupMember.objects.filter(setting__in=wanted).values_list("setting", "group"))
    timed = set(Schedule.objects.filter(setting__in=wanted).order_by().values_list("setting", flat=True))
    withheld = set(withheld_runs().order_by().values_list("activation__setting", flat=True))
    return {
        pk: SettingFacts(
            pk in running,
            pk in tripped,
            pk in group_of,
            group_of.get(pk) in groups,
            pk in timed,
            pk in withheld,
        )
        for pk in wanted
    }


# -- runs as rows: what the server said of them and how near the breaker's limits they are -------------------


@dataclass(frozen=True, slots=True)
class Meter:
    """`value` of `limit`, drawn no longer than its whole length: handlers that were at hand may go past the
    limit."""

    value: int
    limit: int

    @property
    def drawn(self) -> int:
        return min(self.value, self.limit)

    @property
    def tone(self) -> str:
        if self.value >= self.limit:
            return "bad"
        return "warn" if self.value * 2 >= self.limit else "ok"


@dataclass(frozen=True, slots=True)
class RunRow:
    """`stop`: somebody stopped the setting on that server; `stop_button`: where a person may do that."""

    run: Run
    server: StateLabel
    state: StateLabel
    same: Meter
    any: Meter
    stop: ServerStop | None = None
    stop_button: Button | None = None


def run_label(run: Run, now: datetime) -> StateLabel:
    """What a silent server said last is no news: it is shown as such."""
    shown = RUNS[run.state]
    if run.closed_at is None and run.server.state(now) is ServerState.SILENT:
        return StateLabel(format_lazy(_("last reported: {state}"), state=shown.word), "off", "wait")
    return shown


def run_rows(runs: Iterable[Run], setting: LaunchSetting, now: datetime) -> list[RunRow]:
    limit, m = same_limit(setting.breaker_m), setting.breaker_m
    return [
        RunRow(
            run=run,
            server=server_label(run.server, now),
            state=run_label(run, now),
            same=Meter(run.same_count, limit),
            any=Meter(run.any_count, m),
        )
        for run in runs
    ]
