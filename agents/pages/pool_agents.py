"""What a list of allowed agents means for the settings of a pool, before it is saved: asked for by htmx."""

from collections.abc import Collection
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import OfferedAgent, Pool
from agents.rules.allowed_agents import allows, join_names
from agents.settings.allowed_agents import affected_by
from console.ui.page import needs

VIEW = ("agents.view_pool", "agents.view_launchsetting")
EVERY, LISTED = "every", "listed"
MOST_OFFERED = 200
SHOWN = 20


@require_safe
@needs(*VIEW)
def pool_preview(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Of the values in the query; nothing where there is no such pool."""
    pool = Pool.objects.filter(pk=pk).first()
    if pool is None:
        return TemplateResponse(request, "agents/preview_none.html")
    listed = request.GET.get("allows", "") == LISTED
    names = names_of(request.GET.get("listed_agents", "")) if listed else None
    return TemplateResponse(request, "agents/preview_pool.html", {"list": meaning_of(pool, names)})


def meaning_of(pool: Pool, allowed: Collection[str] | None) -> dict[str, Any]:
    """Which settings this list keeps from running, and how it differs from what the servers of the pool
    offer."""
    affected = affected_by(pool, allowed)
    rows = OfferedAgent.objects.filter(server__pools=pool.pk).order_by("name").values_list("name", flat=True)
    offered = list(rows.distinct()[:MOST_OFFERED])
    return {
        "enabled": affected.enabled[:SHOWN],
        "enabled_more": len(affected.enabled) - SHOWN,
        "disabled": affected.disabled[:SHOWN],
        "disabled_more": len(affected.disabled) - SHOWN,
        "offered": join_names(offered),
        "not_allowed": join_names([name for name in offered if not allows(allowed, name)]),
        "not_offered": join_names([name for name in allowed or () if name not in offered]),
    }


def names_of(text: str) -> list[str]:
    """One on each line; commas do as well. Each once."""
    found = [name.strip() for line in text.splitlines() for name in line.split(",")]
    return list(dict.fromkeys(name for name in found if name))


def withheld_text(keys: Collection[str]) -> str:
    """After a list was saved that keeps these enabled settings from their servers."""
    first = ", ".join(sorted(keys)[:SHOWN]) + (", …" if len(keys) > SHOWN else "")
    return _("Not sent to their servers any more, because the pool does not allow their agents: %(keys)s") % {
        "keys": first
    }
