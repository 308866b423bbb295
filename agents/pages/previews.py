"""Describes what a form would mean, before it is saved: asked for by htmx while somebody types."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.destinations import redelivery
from agents.models import Destination, LaunchSetting, OfferedAgent, PoisonPolicy, Pool, Spread
from agents.models.pool import allows, join_names
from agents.models.setting import KEY
from agents.pages import setting_fields
from agents.settings.pools import affected_by
from console.ui.page import needs

# -- which agents servers offer, and what is said of a name that none does -----------------------------------


def offers() -> list[tuple[str, str]]:
    """Each agent that some server offers, with the servers' names."""
    servers: dict[str, list[str]] = defaultdict(list)
    for name, server in OfferedAgent.objects.order_by("name", "server__name").values_list(
        "name", "server__name"
    ):
        servers[name].append(server)
    return [(name, ", ".join(names)) for name, names in servers.items()]


def offer_warning(agent: str, pool: Pool | None) -> str:
    """Returns why this agent could not start, or nothing. Without a pool any server will do."""
    offering = OfferedAgent.objects.filter(name=agent)
    if agent and pool is not None and (refused := pool.refusal_of(agent)):
        return f"{refused} {pool.what_it_allows()}"
    if not agent or (pool is None and offering.exists()):
        return ""
    if not offering.exists():
        names = ", ".join(name for name, _servers in offers()) or _("none yet")
        return _(
            "The agent “%(agent)s” cannot start: it is not available on any server. Available "
            "agents: %(names)s."
        ) % {
            "agent": agent,
            "names": names,
        }
    if offering.filter(server__pools=pool).exists():
        return ""
    servers = ", ".join(offering.order_by("server__name").values_list("server__name", flat=True))
    text = _(
        "The agent “%(agent)s” cannot start: it is not available in the pool “%(pool)s”. "
        "Servers with this agent: %(servers)s."
    )
    return text % {"pool": pool, "agent": agent, "servers": servers}


POLICY_FIELDS = ("max_attempts", "delay_ms", "multiplier", "max_delay_ms", "collision_avoidance", "expiry_ms")
Policy = forms.modelform_factory(Destination, fields=POLICY_FIELDS)
PREVIEWED = ("breaker_m", "count_once", "try_one_first", "spread", "ordered", "blocked_seconds", "after_last")
Breaker = forms.modelform_factory(LaunchSetting, fields=PREVIEWED)


@require_safe
@needs("agents.view_destination")
def destination_preview(request: HttpRequest) -> HttpResponseBase:
    """The redelivery schedule of the values in the query; nothing while they are not valid."""
    form = Policy(request.GET)
    if not form.is_valid():
        return TemplateResponse(request, "agents/preview_none.html")
    destination = Destination(**form.cleaned_data)
    return TemplateResponse(
        request, "agents/schedule.html", {"preview": redelivery.preview(destination), "editing": True}
    )


@require_safe
@needs("agents.view_launchsetting")
def setting_preview(request: HttpRequest) -> HttpResponseBase:
    """The breaker's limits of the values in the query, the schedule of the chosen destination, and whether
    somebody offers the agent.

    The form of an existing setting does not send its key and its destination, which cannot change: `setting`
    names it.
    """
    unsaid = {"spread": Spread.ANY, "blocked_seconds": "5", "after_last": PoisonPolicy.DLQ}
    form = Breaker({**unsaid, **request.GET.dict()})
    if not form.is_valid():
        return TemplateResponse(request, "agents/preview_none.html")
    stored = request.GET.get("setting", "")
    destination = _destination(request.GET.get("destination", ""), stored)
    warning = offer_warning(request.GET.get("agent", "").strip()[:200], _pool(request.GET.get("pool", "")))
    context: dict[str, Any] = {"warnings": [warning] if warning else []}
    if destination:
        key = stored or request.GET.get("key", "")
        wished = LaunchSetting(
            key=key if KEY.fullmatch(key) else "…", destination=destination, **form.cleaned_data
        )
        context["warnings"] += setting_fields.breaker_warnings(wished)
        context |= {"preview": redelivery.preview_of(wished), "facts": setting_fields.after_failure(wished)}
    return TemplateResponse(request, "agents/preview_setting.html", context)


def _pool(pk: str) -> Pool | None:
    return Pool.objects.filter(pk=int(pk)).first() if pk.isdecimal() and len(pk) < 19 else None


def _destination(pk: str, setting: str) -> Destination | None:
    if pk.isdecimal() and len(pk) < 19:
        return Destination.objects.filter(pk=int(pk)).first()
    return Destination.objects.filter(settings__key=setting).first() if setting else None


# -- preview of a list of allowed agents, asked for by htmx --------------------------------------------------


VIEW = ("agents.view_pool", "agents.view_launchsetting")
EVERY, LISTED = "every", "listed"
MOST_OFFERED = 200
SHOWN = 20


@require_safe
@needs(*VIEW)
def pool_preview(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Renders the values in the query; nothing where there is no such pool."""
    pool = Pool.objects.filter(pk=pk).first()
    if pool is None:
        return TemplateResponse(request, "agents/preview_none.html")
    listed = request.GET.get("allows", "") == LISTED
    names = names_of(request.GET.get("listed_agents", "")) if listed else None
    return TemplateResponse(request, "agents/preview_pool.html", {"list": meaning_of(pool, names)})


def meaning_of(pool: Pool, allowed: Collection[str] | None) -> dict[str, Any]:
    """Returns which settings this list keeps from running, and how it differs from what the servers of the
    pool offer."""
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
    return _(
        "Settings no longer sent to their servers because the pool does not allow their agents: %(keys)s"
    ) % {"keys": first}
