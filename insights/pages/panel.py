"""Shows on a setting's page which limit history suggests, and how healthy its last activations were."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from agents.models import LaunchSetting
from console.ui.amounts import duration, instant, number, size
from console.ui.charts.chart import draw
from console.ui.charts.curves import Chart, Curve, Kind
from console.ui.charts.scales import AMOUNT, by_label
from console.ui.page import Panel, link
from console.ui.text import visible_html
from contract.names import HISTORY_KEY
from failures.error_groups.queries import fingerprint_url
from failures.pages.protocols import protocols_url
from insights.models import ActivationHealth, BreakerSuggestion
from insights.pages.run import VIEW
from insights.runs.queries import computed

# -- cells: numbers that lead to their protocols, texts for codes --------------------------------------------


HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOTHING = SafeString('<span class="quiet">—</span>')


def linked(text: Any, url: str) -> SafeString:
    return format_html('<a href="{}">{}</a>', url, text)


def behind(count: int, **wanted: Any) -> SafeString:
    """A number of failures, linked to them."""
    return linked(number(count), protocols_url(**wanted)) if count else SafeString("0")


def in_hour(at: datetime) -> dict[str, str]:
    return {"since": at.isoformat(), "until": (at + HOUR).isoformat()}


def in_day(day: Any) -> dict[str, str]:
    begin = datetime.combine(day, time(), tzinfo=UTC)
    return {"since": begin.isoformat(), "until": (begin + DAY).isoformat()}


def setting_cell(key: str) -> SafeString:
    if key == HISTORY_KEY:
        return format_html('{} <span class="tag">{}</span>', linked(key, link("setting", key)), _("demo"))
    return (
        linked(visible_html(key), link("setting", key))
        if key and _is_key(key)
        else visible_html(key) or NOTHING
    )


def _is_key(key: str) -> bool:
    return key.isascii() and key.replace("-", "").isalnum()


def fingerprint_cell(fingerprint: str, names: dict[str, str]) -> SafeString:
    """A group that the site does not know has no page: the demo's made-up ones, and those that went long
    ago."""
    name = names.get(fingerprint)
    if not name:
        return format_html('<span class="mono">{}</span>', fingerprint[:12])
    return linked(visible_html(name, limit=80), fingerprint_url(fingerprint))


def seconds_cell(value: float | None) -> Any:
    return NOTHING if value is None else duration(value)


def share_cell(value: float | None) -> Any:
    return NOTHING if value is None else f"{number(100 * value, 1)}\N{NO-BREAK SPACE}%"


def bytes_cell(value: int | None) -> Any:
    return NOTHING if value is None else size(value)


def what_if_cell(key: str, m: int) -> SafeString:
    return (
        linked(number(m), f"{link('setting_what_if', key)}?{urlencode({'m': m})}")
        if _is_key(key)
        else SafeString(m)
    )


def bucket(word: str) -> str:
    """Returns the text of an age, or of a time since a fix."""
    words = {
        "unknown": pgettext("a time since a fix", "no known fix"),
        "under_1h": pgettext("an age", "less than 1 h"),
        "under_1d": pgettext("an age", "1 h to 1 day"),
        "under_7d": pgettext("an age", "1 to 7 days"),
        "under_30d": pgettext("an age", "7 to 30 days"),
        "older": pgettext("an age", "over 30 days"),
    }
    return words.get(word, word)


def suggestion_reason(word: str) -> str:
    """Returns why a limit is suggested."""
    words = {
        "earlier_saves": pgettext("why a limit is suggested", "trips earlier and avoids wasted deliveries"),
        "later_avoids_false": pgettext(
            "why a limit is suggested", "trips less often where failures stop on their own"
        ),
        "as_it_is": pgettext("why a limit is suggested", "the current threshold is optimal"),
        "too_little": pgettext("why a limit is suggested", "not enough data"),
    }
    return words.get(word, word)


SHOWN = 30
# Whole numbers of the evidence, in the order of the sentence.
FIGURES = ("trips", "deliveries_saved", "false_trips")


@dataclass(frozen=True, slots=True)
class SuggestionRow:
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
        "told": _suggestion_row(suggestion, setting) if suggestion else None,
        "setting": setting,
        "chart": _chart(list(reversed(health))) if health else None,
        "health": health[0] if health else None,
        "computed": done.get("breaker_suggestions") or done.get("activation_health"),
    }
    return {"title": _("Insights"), "template": "insights/insight_panel.html", "context": context}


def _suggestion_row(suggestion: BreakerSuggestion, setting: LaunchSetting) -> SuggestionRow:
    evidence = suggestion.evidence if isinstance(suggestion.evidence, dict) else {}
    url = f"{link('setting_what_if', setting.key)}?m={suggestion.m_suggested}"
    now, then = (_sentence(evidence.get(name)) for name in ("now", "suggested"))
    return SuggestionRow(suggestion, suggestion_reason(suggestion.why), now, then, url)


def _sentence(figures: Any) -> str:
    """Empty where the evidence holds no such figures."""
    if not isinstance(figures, dict) or not all(isinstance(figures.get(name), int) for name in FIGURES):
        return ""
    trips, saved, false = (figures[name] for name in FIGURES)
    text = ngettext(
        "would have tripped %(n)s time (deliveries avoided: %(saved)s, false trips: %(false)s)",
        "would have tripped %(n)s times (deliveries avoided: %(saved)s, false trips: %(false)s)",
        trips,
    )
    return text % {"n": number(trips), "saved": number(saved), "false": number(false)}


def _chart(health: list[ActivationHealth]) -> SafeString:
    """Temporary failures beside the others."""
    labels, lasting, temporary, notes = [], [], [], []
    for row in health:
        value = row.failures_per_1000 or 0.0
        about = _("%(at)s · failures per 1,000 deliveries: %(n)s")
        notes.append(about % {"at": instant(row.started_at), "n": number(value, 1)})
        labels.append((date_format(timezone.localtime(row.started_at), "MONTH_DAY_FORMAT"), row.started_at))
        part = value * (row.temporary_share or 0.0)
        lasting.append(value - part)
        temporary.append(part)
    urls = [link("activation", row.activation) for row in health]
    curves = [
        Curve(_("Failures"), lasting, Kind.BARS, "bad", urls),
        Curve(_("Temporary"), temporary, Kind.BARS, "warn"),
    ]
    title = _("Failures per 1,000 deliveries, by activation")
    return draw(Chart("failures-by-activation", title, by_label(labels), curves, AMOUNT, notes=notes))
