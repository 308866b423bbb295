"""What people let a server do: cordon it, drain it, take it back into service."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.models import Duty, Server
from agents.pages.asking import ExpiryForm, Question, ask
from agents.services.duty import back, cordon, drain
from console.ui.labels import Button
from console.ui.page import Text, link, needs

VIEW = "agents.view_server"
CHANGE_DUTY = "agents.can_change_duty"
ASKED = ["GET", "HEAD", "POST"]


def duty_buttons(request: HttpRequest, server: Server) -> list[Button]:
    """What leads away from the duty that the server has."""
    text = _("You may not do that. Ask for the permission “%(permission)s”.")
    may = request.user.has_perm(CHANGE_DUTY)
    why = "" if may else text % {"permission": _("Can cordon and drain servers")}
    every = {
        Duty.ACTIVE: Button(
            "back", _("Back into service…"), link("server_back", server.name), "play", "primary", why
        ),
        Duty.CORDONED: Button("cordon", _("Cordon…"), link("server_cordon", server.name), "pause", "", why),
        Duty.DRAINING: Button("drain", _("Drain…"), link("server_drain", server.name), "down", "", why),
    }
    return [button for duty, button in every.items() if duty != server.duty]


@dataclass(frozen=True, slots=True)
class _Change:
    title: Text
    texts: list[Text]
    button: Text
    icon: str
    done: Text


def _ask(
    request: HttpRequest,
    server: Server,
    change: _Change,
    do: Callable[[Any, datetime], bool],
    form: type[ExpiryForm] | None = None,
) -> HttpResponseBase:
    crumbs: list[tuple[Text, str]] = [
        (_("Servers"), link("servers")),
        (server.name, link("server", server.name)),
    ]
    question = Question(
        title=change.title,
        texts=change.texts,
        button=change.button,
        icon=change.icon,
        section="servers",
        back=link("server", server.name),
        crumbs=crumbs,
    )

    def act(bound: Any) -> Text:
        do(bound, timezone.now())
        return change.done

    return ask(request, question, act, form)


@require_http_methods(ASKED)
@needs(VIEW, CHANGE_DUTY)
def cordon_page(request: HttpRequest, name: str) -> HttpResponseBase:
    server = get_object_or_404(Server, name=name)
    facts = {"server": name}
    change = _Change(
        title=_("Cordon %(server)s?") % facts,
        texts=[_("Nothing new begins there. What runs there goes on.")],
        button=_("Cordon"),
        icon="pause",
        done=_("Cordoned: %(server)s") % facts,
    )

    def do(form: ExpiryForm, now: datetime) -> bool:
        return cordon(server, request.user, form.cleaned_data["reason"], form.until(now), now)

    return _ask(request, server, change, do, ExpiryForm)


@require_http_methods(ASKED)
@needs(VIEW, CHANGE_DUTY)
def drain_page(request: HttpRequest, name: str) -> HttpResponseBase:
    server = get_object_or_404(Server, name=name)
    facts = {"server": name}
    change = _Change(
        title=_("Drain %(server)s?") % facts,
        texts=[
            _(
                "Nothing new begins there. What runs there ends in order: messages at hand finish, the rest "
                "goes back."
            ),
            _("What runs on one server only moves to another that is able; where none is, it stays."),
        ],
        button=_("Drain"),
        icon="down",
        done=_("Draining: %(server)s") % facts,
    )

    def do(form: ExpiryForm, now: datetime) -> bool:
        return drain(server, request.user, form.cleaned_data["reason"], form.until(now), now)

    return _ask(request, server, change, do, ExpiryForm)


@require_http_methods(ASKED)
@needs(VIEW, CHANGE_DUTY)
def back_page(request: HttpRequest, name: str) -> HttpResponseBase:
    server = get_object_or_404(Server, name=name)
    facts = {"server": name}
    change = _Change(
        title=_("Take %(server)s back into service?") % facts,
        texts=[_("Settings whose pool holds it may begin there again at once.")],
        button=_("Back into service"),
        icon="play",
        done=_("Back in service: %(server)s") % facts,
    )
    return _ask(request, server, change, lambda _form, now: back(server, request.user, now))
