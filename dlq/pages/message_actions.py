"""Before something is done with waiting messages: which, what follows, why. Then it is written down for a
worker."""

from dataclasses import replace
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.models import LaunchSetting
from broker.management import waiting_messages
from broker.port import BrokerError
from console.audit.refusals import audited
from console.broker import management, with_timeout
from console.operations.operation import check_allowed, perform
from console.operations.refusals import BrokerAway, NotAllowed, Refused
from console.ui.amounts import is_typed, number
from console.ui.page import link, page
from dlq.models.message_action import WaitingPart
from dlq.pages.subscriptions import waiting_url
from dlq.replay.preflight.rules import TYPED_ABOVE
from dlq.subscriptions.operations import BY_KIND, KEPT_REASON, MESSAGES, OnMessages
from dlq.subscriptions.queries import place_counts
from dlq.subscriptions.requests import LARGEST_SELECTION, NEED_REASON, POSSIBLE, Selection
from dlq.subscriptions.text import PARTS

LONGEST_NUMBER = 19


class MessageActionForm(forms.Form):
    """`asked`: how many the page that asked told of; more than these are not touched."""

    asked = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput())
    confirm = forms.CharField(label="", required=False, max_length=20)

    def __init__(self, data: Any, kind: str) -> None:
        super().__init__(data)
        self.fields["reason"] = KEPT_REASON.form_field()
        self.fields["reason"].required = kind in NEED_REASON

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        asked = cleaned.get("asked") or 0
        if asked > TYPED_ABOVE and not is_typed(cleaned.get("confirm", ""), asked):
            self.add_error("confirm", gettext("Type the number %(n)s.") % {"n": number(asked)})
        return cleaned


@require_http_methods(["GET", "HEAD", "POST"])
def waiting_ask_page(request: HttpRequest, key: str) -> HttpResponseBase:
    """Looks, and begins with a POST. What the address or the body does not name as the page does leads back
    to it."""
    data = request.POST if request.method == "POST" else request.GET
    kind, part = data.get("kind", ""), data.get("part", "")
    chosen = _chosen(data, kind, part)
    if chosen is None:
        messages.warning(request, _("Select at least one message first."))
        return HttpResponseRedirect(waiting_url(key, part if part in PARTS else ""))
    return audited(BY_KIND[kind].code)(_asked)(request, key=key, kind=kind, chosen=chosen)


def _asked(request: HttpRequest, key: str, kind: str, chosen: Selection) -> HttpResponseBase:
    setting, operation = get_object_or_404(MESSAGES.rows_for(request.user), key=key), BY_KIND[kind]
    posted = request.method == "POST"
    if posted:
        check_allowed(operation, setting, request.user)
    elif why := operation.permission.why_not(request.user, setting):
        raise NotAllowed(why)
    form = MessageActionForm(request.POST if posted else None, kind)
    try:
        if form.is_valid():
            reason, most = form.cleaned_data["reason"], form.cleaned_data["asked"]
            chosen = replace(chosen, most=most)
            action = perform(operation, setting, request.user, chosen=chosen, reason=reason).made
            return HttpResponseRedirect(link("waiting_action", action.pk))
        if posted and "asked" not in form.errors:
            count = form.cleaned_data["asked"]
        else:
            form.initial["asked"] = count = _count(setting, chosen)
    except BrokerError as error:
        return _refused(request, key, chosen.part, BrokerAway(error))
    except Refused as refused:
        return _refused(request, key, chosen.part, refused)
    return _shown(request, setting, operation(), chosen, form, count)


def _chosen(data: Any, kind: str, part: str) -> Selection | None:
    if part not in POSSIBLE.get(kind, ()):
        return None
    if data.get("all") == "1":
        return Selection(part, None)
    named = ",".join(data.getlist("number")).split(",")
    numbers = {
        int(each) for each in named if each.isascii() and each.isdecimal() and len(each) < LONGEST_NUMBER
    }
    return Selection(part, sorted(numbers)) if 0 < len(numbers) <= LARGEST_SELECTION else None


def _count(setting: LaunchSetting, chosen: Selection) -> int:
    if chosen.numbers is not None:
        return len(chosen.numbers)
    broker = management()
    return with_timeout(lambda: place_counts(broker, setting)).of(chosen.part)


def _refused(request: HttpRequest, key: str, part: str, refused: Refused) -> HttpResponseBase:
    """Leads to the action that is in the way, if there is one."""
    messages.error(request, refused.sentence)
    running = refused.more.get("action")
    return HttpResponseRedirect(link("waiting_action", running) if running else waiting_url(key, part))


def _shown(
    request: HttpRequest,
    setting: LaunchSetting,
    operation: OnMessages,
    chosen: Selection,
    form: MessageActionForm,
    count: int,
) -> HttpResponseBase:
    back = waiting_url(setting.key, chosen.part)
    every = chosen.numbers is None
    return page(
        request,
        "dlq/message_action_confirm.html",
        title=operation.asks,
        section="settings",
        crumbs=[*MESSAGES.crumbs(setting)[:-1], (MESSAGES.title, back)],
        setting=setting,
        operation=operation,
        chosen=chosen,
        part_label=PARTS[chosen.part],
        whole=every and chosen.part == WaitingPart.DELAYED and count > waiting_messages.LISTED,
        count=count,
        typed=count > TYPED_ABOVE,
        form=form,
        numbers=",".join(map(str, chosen.numbers or ())),
        back=back,
    )
