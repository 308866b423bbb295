"""What a form would mean, before it is saved: asked for by htmx while somebody types."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.models import Destination, LaunchSetting, PoisonPolicy, Pool, Spread
from agents.models.setting import KEY
from agents.pages import groups, redelivery
from agents.pages.rows import offer_warning
from console.ui.page import needs

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
        context["warnings"] += groups.breaker_warnings(wished)
        context |= {"preview": redelivery.preview_of(wished), "facts": groups.after_failure(wished)}
    return TemplateResponse(request, "agents/preview_setting.html", context)


def _pool(pk: str) -> Pool | None:
    return Pool.objects.filter(pk=int(pk)).first() if pk.isdecimal() and len(pk) < 19 else None


def _destination(pk: str, setting: str) -> Destination | None:
    if pk.isdecimal() and len(pk) < 19:
        return Destination.objects.filter(pk=int(pk)).first()
    return Destination.objects.filter(settings__key=setting).first() if setting else None
