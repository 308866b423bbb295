"""Watches the goals of settings: messages that take longer than was promised, by how fast they use up what
the goal allows."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from alerts.kinds import AlertKind, Observation, Observe
from alerts.models import Severity
from alerts.rules import Thresholds
from console.ui.amounts import coarse, duration, number
from console.ui.page import link
from metrics.goals import (
    FAST,
    PERIOD,
    SLOW,
    BurnWindow,
    burn_rate,
    burning,
    handled_within,
    settings_with_goals,
)


def _observe(windows: Sequence[BurnWindow]) -> Observe:
    lengths = {length for window in windows for length in (window.long, window.short)}

    def observe(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
        settings = settings_with_goals()
        figures = handled_within(settings, lengths, now) if settings else {}
        for setting in settings:
            found = figures[setting.pk]
            value, window = burning(windows, found, setting.goal_percent)
            long = found[window.long]
            facts = {
                "setting": setting.key,
                "window": window.long.total_seconds(),
                "late": long.late / long.total if long.total else 0.0,
                "allowed": 1 - setting.goal_percent / 100,
                "goal": setting.goal_seconds,
                "burn": burn_rate(long, setting.goal_percent),
            }
            pools = frozenset([setting.pool_id])
            yield Observation(setting.key, round(value, 3), setting=setting.pk, pools=pools, facts=facts)

    return observe


def _says(facts: Mapping[str, Any], value: float) -> str:
    text = _(
        "“%(key)s”: in the last %(window)s, %(late)s %% of messages were processed more than "
        "%(goal)s after sending. The goal allows %(allowed)s %%. At this rate, the 30-day "
        "error budget lasts %(time)s."
    )
    return text % {
        "key": facts["setting"],
        "window": duration(facts["window"]),
        "late": number(100 * facts["late"], 1),
        "goal": duration(facts["goal"]),
        "allowed": f"{100 * facts['allowed']:.4g}",
        "time": coarse(PERIOD / max(facts["burn"], 0.01)),
    }


def _kind(name: str, label: Any, severity: Severity, windows: Sequence[BurnWindow]) -> AlertKind:
    return AlertKind(
        name=name,
        label=label,
        severity=severity,
        limits=Thresholds(1.0, 1.0),
        unit=gettext_lazy("ratio of the burn rate to the allowed maximum"),
        says=_says,
        measure=lambda value: f"×{number(value, 1)}",
        what_to_do=gettext_lazy(
            "Open the setting. Check whether messages wait too long or are processed too slowly. "
            "Raise the number of concurrent messages, add servers, or find out why the agent is "
            "slow. If the goal is too strict, change it."
        ),
        url=lambda facts: link("setting", facts["setting"]),
        observe=_observe(windows),
    )


BURNING = _kind("goal_burning", gettext_lazy("Processing goal at risk"), Severity.BAD, FAST)
BURNING_SLOWLY = _kind(
    "goal_burning_slowly", gettext_lazy("Error budget will not last 30 days"), Severity.WARNING, SLOW
)

KINDS = (BURNING, BURNING_SLOWLY)
