"""On a setting's page: which limit history suggests, and how healthy its last activations were."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import LaunchSetting
from console.ui.amounts import number
from console.ui.page import link
from console.ui.panels import Panel
from failures.insights.reading import computed
from failures.models import ActivationHealth, BreakerSuggestion
from failures.pages.charts import Bar, bar_chart
from failures.pages.insight_cells import why
from failures.pages.pipeline_run import VIEW

SHOWN = 30
# Whole numbers of the evidence, in the order of the sentence.
FIGURES = ("trips", "deliveries_saved", "false_trips")


@dataclass(frozen=True, slots=True)
class Told:
    suggestion: BreakerSuggestion
    why: str
    now: str
    then: str
    url: str


def insight_panel(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    """Nothing where the pipeline has never found anything of it."""
    if not request.user.has_perm(VIEW):
        return None
    suggestion = BreakerSuggestion.objects.filter(setting_key=setting.key).first()
    health = list(ActivationHealth.objects.filter(setting_key=setting.key).order_by("-started_at")[:SHOWN])
    if suggestion is None and not health:
        return None
    done = computed()
    context = {
        "told": _told(suggestion, setting) if suggestion else None,
        "setting": setting,
        "chart": _chart(list(reversed(health))) if health else None,
        "health": health[0] if health else None,
        "computed": done.get("breaker_suggestions") or done.get("activation_health"),
    }
    return {"title": _("What history says"), "template": "failures/insight_panel.html", "context": context}


def _told(suggestion: BreakerSuggestion, setting: LaunchSetting) -> Told:
    evidence = suggestion.evidence if isinstance(suggestion.evidence, dict) else {}
    url = f"{link('setting_what_if', setting.key)}?m={suggestion.m_suggested}"
    now, then = (_sentence(evidence.get(name)) for name in ("now", "suggested"))
    return Told(suggestion, why(suggestion.why), now, then, url)


def _sentence(figures: Any) -> str:
    """Empty where the evidence holds no such figures."""
    if not isinstance(figures, dict) or not all(isinstance(figures.get(name), int) for name in FIGURES):
        return ""
    trips, saved, false = (figures[name] for name in FIGURES)
    text = ngettext(
        "it would have tripped %(n)s time, saved %(saved)s deliveries, %(false)s of the trips for nothing",
        "it would have tripped %(n)s times, saved %(saved)s deliveries, %(false)s of the trips for nothing",
        trips,
    )
    return text % {"n": number(trips), "saved": number(saved), "false": number(false)}


def _chart(health: list[ActivationHealth]) -> Any:
    bars = []
    for row in health:
        value = row.failures_per_1000 or 0.0
        when = date_format(row.started_at, "DATETIME_FORMAT")
        about = _("%(at)s: %(n)s of 1,000 failed") % {"at": when, "n": number(value, 1)}
        part = value * (row.temporary_share or 0.0)
        bars.append(
            Bar(date_format(row.started_at, "j M"), value, about, link("activation", row.activation), part)
        )
    return bar_chart(bars, _("Failures per 1,000 deliveries, by activation"))
