"""Before something is done with waiting messages: which, what follows, why. Then it is written down for a
worker."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.models import LaunchSetting
from broker import waiting
from broker.errors import BrokerError
from console.audit.log import LONGEST_REASON
from console.broker import bounded, management
from console.operations.inputs import StorableField
from console.ui.amounts import number
from console.ui.page import link, page
from dlq.models.waiting import WaitingKind, WaitingPart
from dlq.pages.refusals import say
from dlq.pages.waiting import denied, setting_for, waiting_url
from dlq.pages.waiting_words import PARTS, kind_words
from dlq.preflight.judgement import TYPED_ABOVE
from dlq.waiting.asking import LARGEST_SELECTION, NEED_REASON, POSSIBLE, WaitingRefused
from dlq.waiting.doing import NotAllowed, begin, why_not
from dlq.waiting.looking import counts_of

LONGEST_NUMBER = 19


@dataclass(frozen=True, slots=True)
class Chosen:
    """`numbers` None: all of the part."""

    kind: str
    part: str
    numbers: tuple[int, ...] | None


class AskForm(forms.Form):
    """`asked`: how many the page that asked told of; more than these are not touched."""

    asked = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput())
    reason = StorableField(
        label=gettext_lazy("Why? (kept with the messages)"),
        required=False,
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"class": "reason", "rows": 3}),
    )
    confirm = forms.CharField(label="", required=False, max_length=20)

    def __init__(self, data: Any, kind: str) -> None:
        super().__init__(data)
        self.fields["reason"].required = kind in NEED_REASON

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        asked = cleaned.get("asked") or 0
        digits = "".join(letter for letter in cleaned.get("confirm", "") if letter.isdecimal())
        if asked > TYPED_ABOVE and digits != str(asked):
            self.add_error("confirm", gettext("Type the number %(n)s.") % {"n": number(asked)})
        return cleaned


@require_http_methods(["GET", "HEAD", "POST"])
def waiting_ask_page(request: HttpRequest, key: str) -> HttpResponseBase:
    """Looks, and begins with a POST. What the address or the body does not name as the page does leads back
    to it."""
    setting = setting_for(request, key)
    posted = request.method == "POST"
    chosen = _chosen(request.POST if posted else request.GET)
    if chosen is None:
        messages.warning(request, _("Select at least one message first."))
        return HttpResponseRedirect(waiting_url(key, _part(request.POST if posted else request.GET)))
    if not posted and (why := why_not(request.user, setting)):
        raise PermissionDenied(why)
    form = AskForm(request.POST if posted else None, chosen.kind)
    if posted and form.is_valid():
        return _begun(request, setting, chosen, form)
    if not posted or "asked" in form.errors:
        try:
            form.initial["asked"] = count = _count(setting, chosen)
        except BrokerError:
            return _away(request, key, chosen.part)
    else:
        count = form.cleaned_data["asked"]
    return _shown(request, setting, chosen, form, count)


def _part(data: Any) -> str:
    part = data.get("part", "")
    return part if part in PARTS else ""


def _chosen(data: Any) -> Chosen | None:
    kind, part = data.get("kind", ""), data.get("part", "")
    if part not in POSSIBLE.get(kind, ()):
        return None
    if data.get("all") == "1":
        return Chosen(kind, part, None)
    named = ",".join(data.getlist("number")).split(",")
    numbers = {
        int(each) for each in named if each.isascii() and each.isdecimal() and len(each) < LONGEST_NUMBER
    }
    return Chosen(kind, part, tuple(sorted(numbers))) if 0 < len(numbers) <= LARGEST_SELECTION else None


def _count(setting: LaunchSetting, chosen: Chosen) -> int:
    if chosen.numbers is not None:
        return len(chosen.numbers)
    broker = management()
    return bounded(lambda: counts_of(broker, setting)).of(chosen.part)


def _begun(request: HttpRequest, setting: LaunchSetting, chosen: Chosen, form: AskForm) -> HttpResponseBase:
    said = form.cleaned_data
    try:
        action = begin(
            setting,
            chosen.kind,
            part=chosen.part,
            numbers=chosen.numbers,
            by=request.user,
            now=timezone.now(),
            reason=said["reason"],
            most=said["asked"],
        )
    except NotAllowed as refused:
        raise denied(refused) from refused
    except WaitingRefused as refused:
        say(request, refused)
        running = refused.more.get("action")
        return HttpResponseRedirect(
            link("waiting_action", running) if running else waiting_url(setting.key, chosen.part)
        )
    except BrokerError:
        return _away(request, setting.key, chosen.part)
    return HttpResponseRedirect(link("waiting_action", action.pk))


def _away(request: HttpRequest, key: str, part: str) -> HttpResponseBase:
    messages.error(request, _("The broker does not answer: nothing was begun. Try again when it is back."))
    return HttpResponseRedirect(waiting_url(key, part))


def _shown(
    request: HttpRequest, setting: LaunchSetting, chosen: Chosen, form: AskForm, count: int
) -> HttpResponseBase:
    words, key = kind_words(chosen.kind), setting.key
    whole = chosen.part == WaitingPart.DELAYED and chosen.numbers is None and count > waiting.LISTED
    return page(
        request,
        "dlq/waiting_ask.html",
        title=words.title,
        section="settings",
        crumbs=[
            (_("Settings"), link("settings")),
            (key, link("setting", key)),
            (_("Waiting messages"), waiting_url(key, chosen.part)),
        ],
        setting=setting,
        chosen=chosen,
        part_label=PARTS[chosen.part],
        words=words,
        whole=whole,
        count=count,
        typed=count > TYPED_ABOVE,
        form=form,
        last_attempts=chosen.kind == WaitingKind.TRY_NOW,
        numbers=",".join(map(str, chosen.numbers or ())),
        back=waiting_url(key, chosen.part),
    )
