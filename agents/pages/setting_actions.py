"""What people do with a setting: switch it on or off, run it now, stop its activation, let one server go
on."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.models import Activation, BreakerTrip, LaunchSetting, Server, Spread
from agents.pages.asking import Question, ReasonForm, SwitchOffForm, SwitchOnForm, ask
from agents.pages.buttons import enable_refusal, open_activation, told
from agents.pages.trip_words import trip_cause
from agents.services import retrying
from agents.services.groups import group_of
from agents.services.queue_counts import figures_of
from agents.services.resuming import resume_on_server
from agents.services.rights import may
from agents.services.settings import disable_setting, enable_setting
from agents.services.starting import run_now, start_refusal, stop_activation, stop_refusal
from console.reasons import said
from console.ui.page import Text, link, needs

VIEW = "agents.view_launchsetting"
ASKED = ["GET", "HEAD", "POST"]


def setting_for(request: HttpRequest, key: str, action: str) -> LaunchSetting:
    """The setting this person wants to act on: 404, or 403 without the right, whatever the page showed."""
    setting = get_object_or_404(
        LaunchSetting.objects.select_related("pool", "destination", "disabled_by"), key=key
    )
    if not may(request.user, action, setting):
        raise PermissionDenied
    return setting


def _frame(setting: LaunchSetting) -> dict[str, Any]:
    crumbs: list[tuple[Text, str]] = [
        (_("Settings"), link("settings")),
        (setting.key, link("setting", setting.key)),
    ]
    return {"section": "settings", "back": link("setting", setting.key), "crumbs": crumbs}


def _figures(setting: LaunchSetting) -> dict[str, Any]:
    return {"figures": figures_of(setting)} if setting.takes_messages else {}


@require_http_methods(ASKED)
@needs(VIEW)
def enable_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = setting_for(request, key, "enable")
    trip = (
        setting.trips.select_related("group")
        .prefetch_related("interruptions__server")
        .filter(ended_at=None)
        .first()
    )
    question = Question(
        title=_("Switch %(key)s on?") % {"key": key},
        texts=[_what_starts(setting), _("The breaker's counts begin at 0.")],
        button=_("Switch on"),
        icon="play",
        refusal="" if setting.enabled else enable_refusal(setting),
        **_frame(setting),
    )

    def act(form: Any) -> Text:
        chosen = form.cleaned_data["try_one_first"] if form else None
        enable_setting(setting, by=request.user, now=timezone.now(), try_one_first=chosen)
        return _("Switched on: %(key)s") % {"key": key}

    form: Callable[..., SwitchOnForm] | None = None
    if setting.takes_messages and not setting.enabled:
        form = partial(SwitchOnForm, initial={"try_one_first": setting.try_one_first or trip is not None})
    shown: dict[str, Any] = (
        {"off": setting, "trip": trip, "trip_cause": _cause(trip)} if not setting.enabled else {}
    )
    return ask(request, question, act, form, **shown, **_figures(setting))


def _cause(trip: BreakerTrip | None) -> str:
    return trip_cause(trip, list(trip.interruptions.all())) if trip else ""


def _what_starts(setting: LaunchSetting) -> str:
    facts = {"agent": setting.agent, "pool": setting.pool.name}
    if setting.timing == "DELAYED":
        return _("Its schedule, or a person, starts %(agent)s in the pool %(pool)s from then on.") % facts
    if not setting.takes_messages:
        return _("A new activation begins: %(agent)s is started in the pool %(pool)s.") % facts
    text = _(
        "A new activation begins: %(agent)s is started in the pool %(pool)s and goes on with what waits."
    )
    return text % facts


@require_http_methods(ASKED)
@needs(VIEW)
def disable_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = setting_for(request, key, "disable")
    group = group_of(setting)
    texts: list[Text] = [_what_stops(setting)]
    if group is not None:
        text = _("It belongs to the group %(name)s: the whole group is switched off with it.")
        texts.append(text % {"name": group.name})
    question = Question(
        title=_("Switch %(key)s off?") % {"key": key},
        texts=texts,
        button=_("Switch off"),
        icon="off",
        tone="danger",
        **_frame(setting),
    )

    def act(form: Any) -> Text:
        now, given = timezone.now(), form.cleaned_data
        until = form.until(now) if group is None else None
        disable_setting(
            setting, request.user, said(given["reason"]), now, ticket=given.get("ticket", ""), until=until
        )
        if group is not None:
            return _("Switched off: %(key)s, and with it its group %(group)s") % {
                "key": key,
                "group": group.name,
            }
        return _("Switched off: %(key)s") % {"key": key}

    form = SwitchOffForm if group is None else ReasonForm
    return ask(request, question, act, form, **_figures(setting))


def _what_stops(setting: LaunchSetting) -> str:
    if not setting.takes_messages:
        return _(
            "It is stopped on every server: the agent is told to stop, and ended after the grace period."
        )
    return _(
        "It is stopped on every server. Messages at hand may finish within the grace period, the rest goes "
        "back "
        "without an attempt spent. New messages wait in its subscription until it is switched on again; "
        "nothing is "
        "lost."
    )


@require_http_methods(ASKED)
@needs(VIEW)
def run_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = setting_for(request, key, "run")
    handles = _("It handles what waits in its subscription, and ends.")
    question = Question(
        title=_("Run %(key)s now?") % {"key": key},
        texts=[
            handles if setting.takes_messages else _("The agent runs once, and the activation ends with it.")
        ],
        button=_("Run now"),
        icon="run",
        refusal=told(start_refusal(setting)),
        **_frame(setting),
    )

    def act(_form: Any) -> Text:
        run_now(setting, request.user, timezone.now())
        return _("Started: %(key)s") % {"key": key}

    return ask(request, question, act, **_figures(setting))


@require_http_methods(ASKED)
@needs(VIEW)
def stop_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = setting_for(request, key, "stop")
    activation = open_activation(setting)
    question = Question(
        title=_("Stop the activation of %(key)s?") % {"key": key},
        texts=[_("What is at hand may finish within the grace period. The setting stays on.")],
        button=_("Stop"),
        icon="off",
        tone="danger",
        refusal=_stop_refusal(activation),
        **_frame(setting),
    )

    def act(form: Any) -> Text:
        if activation and stop_activation(
            activation, request.user, said(form.cleaned_data["reason"]), timezone.now()
        ):
            return _("It is being stopped: %(key)s") % {"key": key}
        return _("It had ended already: %(key)s") % {"key": key}

    return ask(request, question, act, ReasonForm)


def _stop_refusal(activation: Activation | None) -> str:
    return told(stop_refusal(activation)) if activation else _("No activation of it goes on.")


@require_http_methods(ASKED)
@needs(VIEW)
def resume_page(request: HttpRequest, key: str, name: str) -> HttpResponseBase:
    setting = setting_for(request, key, "enable")
    server = Server.objects.filter(name=name).first()
    if server is None:
        raise Http404
    facts = {"key": key, "server": name}
    texts: list[Text] = [
        _("A new run begins on that server alone, its counts at 0. Its failures so far stay as they are.")
    ]
    if setting.spread == Spread.MANY:
        texts.append(
            _("If it gives the setting up again while another has too, it is switched off everywhere.")
        )
    question = Question(
        title=_("Let %(key)s go on on %(server)s?") % facts,
        texts=texts,
        button=_("Resume on this server"),
        icon="run",
        **_frame(setting),
    )

    def act(_form: Any) -> Text:
        resume_on_server(setting, server, request.user, timezone.now())
        return _("It goes on on %(server)s: %(key)s") % facts

    return ask(request, question, act)


@require_http_methods(ASKED)
@needs(VIEW)
def retry_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = setting_for(request, key, "run")
    question = Question(
        title=_("Try the first message of %(key)s again now?") % {"key": key},
        texts=[
            _(
                "Where a failed message blocks the subscription its next attempt begins at once; else "
                "nothing happens."
            )
        ],
        button=_("Try again now"),
        icon="run",
        refusal=told(retrying.refusal(setting)),
        **_frame(setting),
    )

    def act(_form: Any) -> Text:
        retrying.retry_now(setting, request.user, timezone.now())
        return _("Its server tries it again: %(key)s") % {"key": key}

    return ask(request, question, act)
