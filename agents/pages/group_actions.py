"""What people do with a group: switch it on or off, run it now, put its members in another order."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.models import ScheduledGroup
from agents.pages.asking import Question, ReasonForm, ask
from agents.pages.buttons import told
from agents.pages.group_pages import VIEW
from agents.services.group_members import reorder
from agents.services.groups import disable_group, enable_group, group_refusal, run_group_now
from agents.services.rights import may_group
from console.reasons import said
from console.ui.page import Text, link, needs

ASKED = ["GET", "HEAD", "POST"]


def _group(request: HttpRequest, name: str, action: str) -> ScheduledGroup:
    """404, or 403 without the right for every member, whatever the page showed."""
    group = get_object_or_404(ScheduledGroup, name=name)
    if not may_group(request.user, action, group):
        raise PermissionDenied
    return group


def _frame(group: ScheduledGroup) -> dict[str, Any]:
    crumbs: list[tuple[Text, str]] = [(_("Groups"), link("groups")), (group.name, link("group", group.name))]
    return {"section": "groups", "back": link("group", group.name), "crumbs": crumbs}


@require_http_methods(ASKED)
@needs(VIEW)
def enable_page(request: HttpRequest, name: str) -> HttpResponseBase:
    group = _group(request, name, "enable")
    question = Question(
        title=_("Switch the group %(name)s on?") % {"name": name},
        texts=[
            _(
                "All its members are switched on with it. Nothing starts before the next window, or before "
                "“run now”."
            ),
        ],
        button=_("Switch on"),
        icon="play",
        refusal="" if group.enabled else told(group_refusal(group, timezone.now())),
        **_frame(group),
    )

    def act(_form: Any) -> Text:
        enable_group(group, request.user, timezone.now())
        return _("Switched on: %(key)s") % {"key": name}

    return ask(request, question, act)


@require_http_methods(ASKED)
@needs(VIEW)
def disable_page(request: HttpRequest, name: str) -> HttpResponseBase:
    group = _group(request, name, "disable")
    question = Question(
        title=_("Switch the group %(name)s off?") % {"name": name},
        texts=[
            _(
                "The member that runs is stopped, nothing after it starts, and every member is switched off "
                "with it."
            ),
            _(
                "Messages wait in the subscriptions of the members until it is switched on again; nothing is "
                "lost."
            ),
        ],
        button=_("Switch off"),
        icon="off",
        tone="danger",
        **_frame(group),
    )

    def act(form: Any) -> Text:
        disable_group(group, request.user, said(form.cleaned_data["reason"]), timezone.now())
        return _("Switched off: %(key)s") % {"key": name}

    return ask(request, question, act, ReasonForm)


@require_http_methods(ASKED)
@needs(VIEW)
def run_page(request: HttpRequest, name: str) -> HttpResponseBase:
    group = _group(request, name, "run")
    question = Question(
        title=_("Run the group %(name)s now?") % {"name": name},
        texts=[
            _("Its members start one after the other, each only when the one before it has finished well.")
        ],
        button=_("Run now"),
        icon="run",
        **_frame(group),
    )

    def act(_form: Any) -> Text:
        run_group_now(group, request.user, timezone.now())
        return _("Started: %(key)s") % {"key": name}

    return ask(request, question, act)


@require_POST
@needs(VIEW)
def move_page(request: HttpRequest, name: str) -> HttpResponseBase:
    """`member` goes one place `up` or down; a pass that runs keeps the order it began with."""
    group = _group(request, name, "edit")
    keys = list(group.members.order_by("position").values_list("setting__key", flat=True))
    moved, up = request.POST.get("member", ""), request.POST.get("to") == "up"
    if moved in keys:
        place = keys.index(moved)
        other = place - 1 if up else place + 1
        if 0 <= other < len(keys):
            keys[place], keys[other] = keys[other], keys[place]
            try:
                reorder(group, keys, request.user, timezone.now())
            except ValidationError as error:  # changed by somebody else in between
                messages.error(request, " ".join(error.messages))
            except ScheduledGroup.DoesNotExist:
                messages.error(request, _("It was deleted meanwhile."))
                return HttpResponseRedirect(link("groups"))
    return HttpResponseRedirect(link("group", name))
