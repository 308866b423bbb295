"""The page of one launch setting: it whole, with what can be done."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import Activation, ActivationState, LaunchSetting, OfferedAgent, Run
from agents.pages import groups, redelivery
from agents.pages.failures_by_server import failures_by_server
from agents.pages.notices import told_of
from agents.pages.rows import facts_of
from agents.pages.runs import run_rows
from agents.pages.scheduled import scheduled
from agents.pages.shown import ACTIVATIONS, PROVISIONED, setting_shown, stopping_shown
from agents.pages.subscription_notes import stopping_note, subscription_alerts
from agents.pages.withheld import withheld_note
from agents.services.groups import group_of
from agents.services.open_runs import open_runs
from agents.services.partial import is_partial
from agents.services.queue_counts import figures_of
from agents.services.rights import may
from agents.settings.operations import DisableSetting, EnableSetting, RetryMessage, RunSetting, StopSetting
from console.operations.web import operation_buttons
from console.reasons import NO_REASON, Reason
from console.ui import panels
from console.ui.page import link, needs, page

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
    facts, figures, withheld = facts_of([setting.pk])[setting.pk], figures_of(setting), withheld_note(setting)
    facts = replace(facts, withheld=withheld is not None)
    shown = list(setting.activations.all()[:SHOWN_ACTIVATIONS])
    failed = failures_by_server(shown)
    return page(
        request,
        "agents/setting.html",
        title=setting.key,
        section="settings",
        crumbs=[(_("Settings"), link("settings"))],
        setting=setting,
        state=stopping_shown(setting, figures.consumers) or setting_shown(setting, runs, now, facts),
        partial=is_partial(runs, now),
        provisioned=PROVISIONED[setting.provision_state],
        groups=groups.groups(setting, servers, offered),
        warnings=groups.breaker_warnings(setting),
        preview=redelivery.preview_of(setting) if setting.takes_messages else None,
        figures=figures,
        runs=run_rows(_runs_of(current), setting, now),
        current=current,
        activations=[(each, ACTIVATIONS[each.state], failed.get(each.pk)) for each in shown],
        changes=setting.changes.select_related("by", "server", "activation")[:SHOWN_CHANGES],
        buttons=operation_buttons(
            request.user, setting, EnableSetting, RetryMessage, StopSetting, RunSetting, DisableSetting
        ),
        told=told_of(request, setting),
        group=group_of(setting),
        schedule=scheduled(setting, now),
        pending=pending_reason(current),
        withheld=withheld,
        stopping=stopping_note(setting, figures.consumers),
        alerts=subscription_alerts(setting),
        trip=setting.trips.filter(ended_at=None).first() if not setting.enabled else None,
        live_panels=panels.render("setting_live", request, setting),
        whole_panels=panels.render("setting_whole", request, setting),
        panels=panels.render("setting", request, setting),
        may_change=may(request.user, "edit", setting),
    )


def _runs_of(activation: Activation | None) -> list[Run]:
    return (
        list(activation.runs.select_related("server").order_by("server__name", "epoch")) if activation else []
    )


def _setting(key: str) -> LaunchSetting:
    return get_object_or_404(
        LaunchSetting.objects.select_related("pool", "destination", "disabled_by"), key=key
    )


def pending_reason(activation: Activation | None) -> Reason:
    """Why the activation that is open does not run anywhere yet; empty for any other."""
    if activation is None or activation.state != ActivationState.PENDING:
        return NO_REASON
    reason: Reason = activation.reason
    return reason
