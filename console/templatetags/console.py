"""Describes what the templates of the consoles are written with."""

import re
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.http import HttpRequest
from django.template.defaultfilters import capfirst
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from console.reasons import Reason
from console.ui import amounts, errors
from console.ui.page import Rendered, TabGroup, all_tabs, crumbs_of_model, navigation_for, render_panels
from console.ui.text import visible_html, visible_name
from contract import __version__

register = template.Library()
WORD_BREAK = SafeString("<wbr>")


@register.simple_tag
def icon(name: str) -> SafeString:
    """A symbol of templates/ma/icons.html; always beside a word, so hidden from screen readers."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>', name)


@register.simple_tag
def product_version() -> str:
    return f"MA {__version__}"


@register.simple_tag
def state(shown: Any, pill: bool = True) -> SafeString:
    """Icon + word + colour of a `StateLabel`."""
    kind = "state pill" if pill else "state"
    return format_html('<span class="{} {}">{}{}</span>', kind, shown.tone, icon(shown.icon), shown.word)


@register.simple_tag(name="ago")
def ago_tag(instant: datetime | None, missing: str = "—") -> SafeString | str:
    """Relative, with the absolute instant on hover (pages.js turns that into the reader's zone)."""
    if instant is None:
        return missing
    return instant_tag(instant, amounts.ago(instant, timezone.now()))


@register.simple_tag
def lasting(since: datetime) -> SafeString:
    """Returns how long something is so, behind the word for it: `running 2 min`."""
    return instant_tag(since, amounts.coarse(timezone.now() - since))


def instant_tag(instant: datetime, text: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', instant.isoformat(), amounts.instant(instant), text
    )


@register.simple_tag
def at(instant: datetime | None) -> SafeString | str:
    """The absolute instant, in the reader's zone where scripts run, else in the server's with its name."""
    if instant is None:
        return "—"
    absolute = amounts.instant(instant)
    return format_html(
        '<time datetime="{}" title="{}" data-show="local">{}</time>', instant.isoformat(), absolute, absolute
    )


@register.simple_tag
def age_or_time(instant: datetime | None, refreshed: bool) -> SafeString | str:
    """An age where the page is refreshed; nobody corrects one on a page that is left alone."""
    return ago_tag(instant) if refreshed else at(instant)


@register.simple_tag
def now_here() -> SafeString | str:
    return at(timezone.now())


@register.filter("number")
def _number(value: Any) -> str:
    return "—" if value is None else amounts.number(value)


@register.filter("duration")
def _duration(value: timedelta | float | None) -> str:
    return "—" if value is None else amounts.duration(value)


@register.filter("size")
def _size(value: int | None) -> str:
    return "—" if value is None else amounts.size(value)


@register.filter
def visible(text: Any) -> SafeString:
    """One line of hostile text."""
    return visible_html(str(text))


@register.filter
def message_html(message: Any) -> SafeString:
    """A message of the site to a person. It may repeat what was typed; one with links in it is HTML of its
    own."""
    text = capfirst(message)
    return text if isinstance(text, SafeString) else visible_html(str(text), lines=True)


@register.filter(name="visible_name")
def _visible_name(text: Any, limit: int = 0) -> SafeString:
    return visible_name(str(text), limit=limit)


@register.filter
def visible_lines(text: Any) -> SafeString:
    return visible_html(str(text), lines=True)


@register.filter
def visible_head(text: Any, limit: int) -> SafeString:
    return visible_html(str(text), limit=limit)


@register.filter
def breakable(name: str) -> SafeString:
    """A name of small letters, digits and hyphens that may be broken after a hyphen or a point."""
    return format_html_join(
        "",
        "{}{}",
        ((part, WORD_BREAK if part and part in "-._/" else "") for part in re.split(r"([-._/])", name)),
    )


@register.filter
def short_id(value: Any) -> str:
    """The first part of a UUID: enough for people on one page."""
    return str(value)[:8]


@register.filter
def signed_seconds(value: float) -> str:
    sign = "+" if value > 0 else ""
    return f"{sign}{amounts.duration(round(value, 3))}"


@register.filter
def reason_text(reason: Reason) -> SafeString:
    return visible_html(str(reason), limit=300)


register.simple_tag(errors.request_id)


@register.inclusion_tag("ma/crumbs.html", takes_context=True)
def admin_crumbs(context: template.Context, row: Any = None, end: str = "") -> dict[str, Any]:
    """Of a form or a list of the admin; `end`: what is done there."""
    options, user = context["opts"], context["request"].user
    crumbs = crumbs_of_model(options.label_lower, capfirst(options.verbose_name_plural), user, row)
    if not end:  # the last one is where somebody is
        crumbs, end = crumbs[:-1], str(crumbs[-1][0])
    return {"crumbs": crumbs, "title": end}


@register.simple_tag(takes_context=True)
def console_banners(context: template.Context) -> list[Rendered]:
    """Returns what is said above every page."""
    return render_panels("banner", context["request"])


@register.inclusion_tag("ma/nav.html", takes_context=True)
def console_nav(context: template.Context) -> dict[str, Any]:
    """The current tab is the page's own section, on the admin's own lists the one whose address begins this
    one."""
    request: HttpRequest = context["request"]
    entries = [
        (entry, entry.tabs if isinstance(entry, TabGroup) else (entry,))
        for entry in navigation_for(request.user)
    ]
    tabs = all_tabs([entry for entry, _inside in entries])
    section = context.get("section", "")
    if not section:
        here = [tab.section for tab in tabs if tab.url != "/" and request.path.startswith(tab.url)]
        section = next(iter(here), "")
    badges = {tab.section: tab.badge(request) for tab in tabs if tab.badge}
    return {
        "entries": [
            {
                "label": entry.label,
                "grouped": isinstance(entry, TabGroup),
                "tabs": [(tab, badges.get(tab.section, "")) for tab in inside],
                "current": any(tab.section == section for tab in inside),
            }
            for entry, inside in entries
        ],
        "section": section,
    }
