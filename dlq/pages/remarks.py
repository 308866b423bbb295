"""What people add to dead letters from pages: notes, known faults, takings. Every form says what it is
about."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from agents.models import BreakerTrip
from console.operations.inputs import OPEN_ENDED, SPANS, StorableField
from console.ui.page import Text, link
from dlq import remarks
from dlq.models import DeadLetter, KnownFault, Note, Taking
from dlq.models.remark import Remark
from dlq.pages.refusals import say
from dlq.remarks.about import LONGEST, LONGEST_TICKET, About, may_read, why_not_remark

SHOWN = 20
CASE, GROUP, WHOLE = "case", "fingerprint", "setting"


class AboutForm(forms.Form):
    """`of` says which of the three it is about."""

    setting = forms.CharField(max_length=300)
    fingerprint = forms.CharField(max_length=64, required=False)
    message_key = forms.CharField(max_length=255, required=False)
    of = forms.ChoiceField(choices=[(CASE, CASE), (GROUP, GROUP), (WHOLE, WHOLE)])

    def about(self) -> About | None:
        """None where the part that is meant is not named: nobody mutes a whole setting by a form without a
        key."""
        given = self.cleaned_data
        if given["of"] == WHOLE:
            return About(given["setting"])
        if given["of"] == GROUP:
            return About(given["setting"], fingerprint=given["fingerprint"]) if given["fingerprint"] else None
        return About(given["setting"], message_key=given["message_key"]) if given["message_key"] else None


class NoteForm(AboutForm):
    text = StorableField(max_length=LONGEST)


class MuteForm(AboutForm):
    ticket = StorableField(max_length=LONGEST_TICKET, required=False)
    text = StorableField(max_length=LONGEST, required=False)
    lasts = forms.ChoiceField(choices=OPEN_ENDED, required=False)

    def until(self, now: datetime) -> datetime | None:
        span = SPANS.get(self.cleaned_data["lasts"])
        return now + span if span else None


class TakeForm(AboutForm):
    trip = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    text = StorableField(max_length=LONGEST, required=False)


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that a remark can be about, as the form offers it."""

    value: str
    label: Text


@dataclass(frozen=True, slots=True)
class RemarkPanel:
    """`choices` empty: there is nothing to remark on. `refusal`: why this person may only read."""

    about: dict[str, str]
    choices: list[Choice]
    notes: list[Note]
    faults: list[KnownFault]
    takings: list[Taking]
    refusal: str
    back: str
    lasts: list[tuple[str, Any]]
    trip: int | None = None

    @property
    def any(self) -> bool:
        return bool(self.notes or self.faults or self.takings)


LABELS: dict[str, Text] = {
    CASE: gettext_lazy("this message"),
    GROUP: gettext_lazy("all that died of the same"),
    WHOLE: gettext_lazy("all of the setting"),
}


def panel_of(
    request: HttpRequest, setting_key: str, *, fingerprint: str = "", message_key: str = ""
) -> RemarkPanel:
    """What is known of them, narrow things first, and the forms to add to it."""
    wanted = Q(message_key="", fingerprint="")
    if message_key:
        wanted |= Q(message_key=message_key)
    if fingerprint:
        wanted |= Q(fingerprint=fingerprint)

    def of(rows: QuerySet[Any]) -> list[Any]:
        return list(rows.filter(wanted, setting_key=setting_key)[:SHOWN])

    named = {CASE: bool(message_key), GROUP: bool(fingerprint), WHOLE: bool(setting_key)}
    return RemarkPanel(
        about={"setting": setting_key, "fingerprint": fingerprint, "message_key": message_key},
        choices=[Choice(value, LABELS[value]) for value, there in named.items() if there],
        notes=of(Note.objects.all()),
        faults=of(remarks.active_faults(timezone.now())),
        takings=of(remarks.open_takings().filter(trip=None)),
        refusal=why_not_remark(request.user, setting_key) if setting_key else _("It is of no setting."),
        back=request.get_full_path(),
        lasts=OPEN_ENDED,
    )


def panel_of_letter(request: HttpRequest, letter: DeadLetter) -> RemarkPanel:
    return panel_of(
        request, letter.setting_key, fingerprint=letter.fingerprint, message_key=letter.message_key
    )


def _acted(request: HttpRequest, act: Callable[[], Text]) -> HttpResponseBase:
    """Does it, says it, goes back to where the form was."""
    try:
        messages.success(request, str(act()))
    except remarks.RemarkRefused as refused:
        if refused.code == "not_allowed":
            raise PermissionDenied from refused
        say(request, refused)
    return _back(request)


def _back(request: HttpRequest) -> HttpResponseBase:
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(wanted if safe else link("dead_letters"))


def _asked(request: HttpRequest, form: AboutForm, act: Callable[[About], Text]) -> HttpResponseBase:
    about = form.about() if form.is_valid() else None
    if about is None:
        problems = [problem for each in form.errors.values() for problem in each]
        messages.error(request, str(problems[0]) if problems else _("It is not said what this is about."))
        return _back(request)
    return _acted(request, lambda: act(about))


@require_POST
def note_page(request: HttpRequest) -> HttpResponseBase:
    form = NoteForm(request.POST)

    def act(about: About) -> Text:
        remarks.note(about, form.cleaned_data["text"], by=request.user, now=timezone.now())
        return _("The note is kept.")

    return _asked(request, form, act)


@require_POST
def mute_page(request: HttpRequest) -> HttpResponseBase:
    form = MuteForm(request.POST)

    def act(about: About) -> Text:
        given, now = form.cleaned_data, timezone.now()
        remarks.mute(
            about, ticket=given["ticket"], text=given["text"], until=form.until(now), by=request.user, now=now
        )
        return _("It is known now: muted in lists, and left out when dead letters are given back.")

    return _asked(request, form, act)


@require_POST
def take_page(request: HttpRequest) -> HttpResponseBase:
    form = TakeForm(request.POST)

    def act(about: About) -> Text:
        number = form.cleaned_data["trip"]
        trip = get_object_or_404(BreakerTrip.objects.select_related("setting"), pk=number) if number else None
        remarks.take(about, text=form.cleaned_data["text"], trip=trip, by=request.user, now=timezone.now())
        return _("It is yours now.")

    return _asked(request, form, act)


def _one(request: HttpRequest, rows: QuerySet[Any], pk: int) -> Any:
    """403 for who may not see the letters that it is about."""
    found: Remark = get_object_or_404(rows, pk=pk)
    if not may_read(request.user, found.setting_key):
        raise PermissionDenied
    return found


@require_POST
def end_fault_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    fault: KnownFault = _one(request, KnownFault.objects.all(), pk)

    def act() -> Text:
        remarks.end_fault(fault, by=request.user, now=timezone.now())
        return _("It is no longer muted.")

    return _acted(request, act)


@require_POST
def end_taking_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    taking: Taking = _one(request, Taking.objects.all(), pk)

    def act() -> Text:
        remarks.end_taking(taking, by=request.user, now=timezone.now())
        return _("Nobody has it now.")

    return _acted(request, act)


@require_POST
def hand_over_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    taking: Taking = _one(request, Taking.objects.all(), pk)
    name = request.POST.get("to", "").strip()[:150]
    to = User.objects.filter(username=name, is_active=True).first()
    if to is None:
        messages.error(request, _("There is no person “%(name)s”.") % {"name": name})
        return _back(request)

    def act() -> Text:
        remarks.hand_over(taking, to, by=request.user, now=timezone.now())
        return _("It is handed over to %(name)s.") % {"name": to.get_username()}

    return _acted(request, act)
