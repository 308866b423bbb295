"""Describes what is watched of scheduled settings and groups: the last start failed or was skipped, the next
one is late, a run takes too long, ended suspiciously soon, or none will ever begin."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from alerts.kinds import AlertKind, Observation, Observe
from alerts.models import Severity
from alerts.punctuality import (
    LONG_NEEDS,
    Punctuality,
    began_late,
    failed,
    late,
    long,
    never,
    punctuality,
    short,
    skipped,
    usual_seconds,
)
from alerts.rules import Thresholds
from console.reasons import Reason
from console.ui.amounts import duration, instant, number
from console.ui.page import link

# -- the kinds -----------------------------------------------------------------------------------------------


def _observe(rule: Callable[[Punctuality, datetime], float]) -> Observe:
    def observe(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
        found = [(owner, facts, rule(facts, now)) for owner, facts in punctuality(now)]
        for owner, facts, value in sorted(found, key=lambda each: -each[2]):
            if value or owner.subject in live:
                yield Observation(
                    owner.subject,
                    value,
                    setting=owner.setting,
                    pools=owner.pools,
                    facts={**owner.facts, **_told(facts, now)},
                )

    return observe


def _told(facts: Punctuality, now: datetime) -> dict[str, Any]:
    """What the texts are made of, as JSON."""
    start, window = facts.start, facts.window
    ended = (start.ended_at or now) if start else now
    return {
        "started_at": start.started_at.isoformat() if start else "",
        "seconds": (ended - start.started_at).total_seconds() if start else 0.0,
        "usual": usual_seconds(facts, LONG_NEEDS) or 0.0,
        "due_at": window.due_at.isoformat() if window else "",
        "why": window.reason.as_json() if window else {},
        "next": facts.next_due is not None,
        "began": began_late(window, now) > 0.0,
    }


def _at(facts: Mapping[str, Any], name: str) -> str:
    return instant(datetime.fromisoformat(facts[name])) if facts[name] else "—"


def _failed(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(name)s”: the run that started at %(at)s failed.")
    return text % {"name": facts["name"], "at": _at(facts, "started_at")}


def _skipped(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(name)s”: the run scheduled for %(at)s was skipped. Reason: %(why)s")
    why = str(Reason.from_json(facts["why"])) or "—"
    return text % {"name": facts["name"], "at": _at(facts, "due_at"), "why": why}


def _late(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(name)s”: the scheduled run has not started yet. It is %(time)s late.")
    if facts["began"]:
        text = _("“%(name)s”: the scheduled run started %(time)s late.")
    return text % {"name": facts["name"], "time": duration(round(value))}


def _long(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(name)s” has been running for %(time)s. It usually takes %(usual)s.")
    return text % _lengths(facts)


def _short(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(name)s” ended after %(time)s. It usually takes %(usual)s.")
    return text % _lengths(facts)


def _lengths(facts: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": facts["name"],
        "time": duration(round(facts["seconds"])),
        "usual": duration(round(facts["usual"])),
    }


def _never(facts: Mapping[str, Any], value: float) -> str:
    if not facts["next"]:
        return _("“%(name)s” is enabled, but its schedule has no further runs.") % {"name": facts["name"]}
    text = _("“%(name)s” has not started since it was enabled: all scheduled runs were skipped.")
    return text % {"name": facts["name"]}


def _url(facts: Mapping[str, Any]) -> str:
    return link("group", facts["group"]) if "group" in facts else link("setting", facts["setting"])


def _times(value: float) -> str:
    return f"×{number(value, 1)}"


AT_ONCE = Thresholds(1.0, 1.0)
FAILED_START = AlertKind(
    name="schedule_failed",
    label=gettext_lazy("Scheduled run failed"),
    severity=Severity.BAD,
    limits=AT_ONCE,
    unit=gettext_lazy("1 if the last run failed"),
    says=_failed,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "Open the setting or group and check the failures of the last run. Fix the cause, "
        "then choose “Run now”. The alert closes when a new run starts."
    ),
    url=_url,
    observe=_observe(failed),
)
SKIPPED_START = AlertKind(
    name="schedule_skipped",
    label=gettext_lazy("Scheduled run skipped"),
    severity=Severity.WARNING,
    limits=AT_ONCE,
    unit=gettext_lazy("1 if the last scheduled run was skipped"),
    says=_skipped,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "If the previous run was still active, increase the interval or make the runs "
        "shorter. If the run is needed now, start it manually. The alert closes when the next "
        "scheduled run starts."
    ),
    url=_url,
    observe=_observe(skipped),
)
LATE_START = AlertKind(
    name="schedule_late",
    label=gettext_lazy("Scheduled run late"),
    severity=Severity.BAD,
    limits=Thresholds(60.0, 60.0),
    unit=gettext_lazy("seconds after the scheduled time"),
    says=_late,
    measure=lambda value: duration(round(value)),
    what_to_do=gettext_lazy(
        "If the run is waiting for a server, check that the pool has a server that is in "
        "service and offers the agent. If no runs start at all, check the scheduler on the "
        "Health page."
    ),
    url=_url,
    observe=_observe(late),
)
LONG_RUN = AlertKind(
    name="schedule_long",
    label=gettext_lazy("Scheduled run takes too long"),
    severity=Severity.WARNING,
    limits=Thresholds(3.0, 3.0),
    unit=gettext_lazy("ratio of the duration so far to the usual duration"),
    says=_long,
    measure=_times,
    what_to_do=gettext_lazy(
        "Open the activation and check whether messages are still being processed. If the "
        "agent hangs, stop the activation, then choose “Run now”."
    ),
    url=_url,
    observe=_observe(long),
)
SHORT_RUN = AlertKind(
    name="schedule_short",
    label=gettext_lazy("Scheduled run suspiciously short"),
    severity=Severity.WARNING,
    limits=Thresholds(10.0, 10.0),
    unit=gettext_lazy("ratio of the usual duration to that of the last run"),
    says=_short,
    measure=_times,
    what_to_do=gettext_lazy(
        "Check that the last run did all its work: the agent may have found no data, or ended "
        "before its work was done. The alert closes after a run of the usual duration."
    ),
    url=_url,
    observe=_observe(short),
)
NEVER_STARTED = AlertKind(
    name="schedule_never",
    label=gettext_lazy("Schedule never starts anything"),
    severity=Severity.BAD,
    limits=AT_ONCE,
    unit=gettext_lazy("missed scheduled runs since enabling"),
    says=_never,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "Check the schedule and the reasons for the skipped runs. Change the schedule. If the "
        "setting or group is not needed, disable it."
    ),
    url=_url,
    observe=_observe(never),
)

KINDS = (FAILED_START, SKIPPED_START, LATE_START, LONG_RUN, SHORT_RUN, NEVER_STARTED)
