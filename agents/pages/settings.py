"""The pages of one launch setting: it whole, and switching it on and off."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from agents import panels
from agents.models import Activation, LaunchSetting, OfferedAgent, Run
from agents.pages import groups
from agents.pages.consoles import link, needs, page
from agents.pages.figures import figures_of
from agents.pages.rows import facts_of, open_runs
from agents.pages.runs import run_rows
from agents.pages.shown import ACTIVATIONS, PROVISIONED, partial, setting_shown
from agents.services.rights import may, why_not
from agents.services.settings import Refused, disable_setting, enable_setting, refusal
from contract.text import storable

VIEW = "agents.view_launchsetting"
SHOWN_CHANGES = 15
SHOWN_ACTIVATIONS = 10


@require_safe
@needs(VIEW)
def setting_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = _setting(key)
    now = timezone.now()
    servers = list(setting.pool.servers.all())
    offered = list(OfferedAgent.objects.filter(name=setting.agent, server__in=servers))
    current = setting.activations.order_by("-started_at").first()
    runs = open_runs([setting.pk]).get(setting.pk, [])
    facts = facts_of([setting.pk])[setting.pk]
    return page(
        request,
        "agents/setting.html",
        title=setting.key,
        section="settings",
        crumbs=[(_("Settings"), link("settings"))],
        setting=setting,
        state=setting_shown(setting, runs, now, facts),
        partial=partial(runs, now),
        provisioned=PROVISIONED[setting.provision_state],
        groups=groups.groups(setting, servers, offered),
        warnings=groups.breaker_warnings(setting),
        preview=groups.preview(setting.subscribed) if setting.takes_messages else None,
        figures=figures_of(setting),
        runs=run_rows(_runs_of(current), setting, now),
        current=current,
        activations=[(each, ACTIVATIONS[each.state]) for each in setting.activations.all()[:SHOWN_ACTIVATIONS]],
        changes=setting.changes.select_related("by", "server", "activation")[:SHOWN_CHANGES],
        switch=switch_of(request, setting),
        live_panels=panels.render("setting_live", request, setting),
        whole_panels=panels.render("setting_whole", request, setting),
        panels=panels.render("setting", request, setting),
        may_change=may(request.user, "edit", setting),
    )


def _runs_of(activation: Activation | None) -> list[Run]:
    return list(activation.runs.select_related("server").order_by("server__name", "epoch")) if activation else []


def _setting(key: str) -> LaunchSetting:
    return get_object_or_404(LaunchSetting.objects.select_related("pool", "destination", "disabled_by"), key=key)


@dataclass(frozen=True, slots=True)
class Switch:
    """The button that switches a setting on or off; `refusal` says why it cannot be pressed."""

    on: bool
    url: str
    refusal: str = ""


def switch_of(request: HttpRequest, setting: LaunchSetting) -> Switch:
    if setting.enabled:
        return Switch(False, link("setting_disable", setting.key), why_not(request.user, "disable", setting))
    url = link("setting_enable", setting.key)
    if missing := why_not(request.user, "enable", setting):
        return Switch(True, url, missing)
    refused = refusal(setting, timezone.now())
    return Switch(True, url, f"{refused.reason} {refused.what_to_do}" if refused else "")


def setting_for(request: HttpRequest, key: str, action: str) -> LaunchSetting:
    """The setting this person wants to act on: 404, or 403 without the right, whatever the page showed."""
    setting = _setting(key)
    if not may(request.user, action, setting):
        raise PermissionDenied
    return setting


@require_http_methods(["GET", "HEAD", "POST"])
@needs(VIEW)
def enable_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = setting_for(request, key, "enable")
    if request.method != "POST":
        return _confirm(request, setting, on=True)
    try:
        enable_setting(setting, by=request.user, now=timezone.now())
    except Refused as refused:
        messages.error(request, f"{refused.reason} {refused.what_to_do}")
    else:
        messages.success(request, _("Switched on: %(key)s") % {"key": setting.key})
    return HttpResponseRedirect(link("setting", setting.key))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(VIEW)
def disable_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = setting_for(request, key, "disable")
    if request.method != "POST":
        return _confirm(request, setting, on=False)
    reason = storable(request.POST.get("reason", "").strip()[:2000])
    disable_setting(setting, by=request.user, reason=reason, now=timezone.now())
    messages.success(request, _("Switched off: %(key)s") % {"key": setting.key})
    return HttpResponseRedirect(link("setting", setting.key))


def _confirm(request: HttpRequest, setting: LaunchSetting, *, on: bool) -> HttpResponseBase:
    texts: dict[str, Any] = {"key": setting.key}
    title = _("Switch %(key)s on?") % texts if on else _("Switch %(key)s off?") % texts
    return page(
        request,
        "agents/setting_switch.html",
        title=title,
        section="settings",
        crumbs=[(_("Settings"), link("settings")), (setting.key, link("setting", setting.key))],
        setting=setting,
        switch=switch_of(request, setting),
        on=on,
        figures=figures_of(setting),
    )
