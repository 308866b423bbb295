"""Describes what people add to dead letters from pages: notes, known faults, takings. Every form says what it
is about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import BreakerTrip
from agents.pools.rights import settings_for
from console.operations.inputs import OPEN_ENDED
from console.operations.operation import Operation
from console.operations.web import FormPage
from console.ui.page import Panel, Text
from dlq import rights
from dlq.annotations import Take, may_read, of_trip, why_not_annotate
from dlq.models import DeadLetter, KnownFault, Note, Taking
from dlq.models.annotation import Annotation, active_faults, open_takings

SHOWN = 20
CASE, GROUP, WHOLE = "case", "fingerprint", "setting"
PARTS = {CASE: "message_key", GROUP: "fingerprint", WHOLE: ""}


class AboutForm(forms.Form):
    """`of` says which of the three it is about."""

    setting = forms.CharField(max_length=300)
    fingerprint = forms.CharField(max_length=64, required=False)
    message_key = forms.CharField(max_length=255, required=False)
    of = forms.ChoiceField(choices=[(CASE, CASE), (GROUP, GROUP), (WHOLE, WHOLE)])
    trip = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)

    def columns(self, operation: type[Operation[Any]]) -> dict[str, Any] | None:
        """Returns None where the part that is meant is not named: nobody mutes a whole setting by a form
        without a key."""
        given = self.cleaned_data
        if given["trip"] and operation is Take:
            return of_trip(given["trip"])
        part = PARTS[given["of"]]
        if part and not given[part]:
            return None
        return {"setting_key": given["setting"]} | ({part: given[part]} if part else {})


class AnnotationPage(FormPage):
    """Page of a form that says what it is about, or of one that is there already."""

    home = "dead_letters"

    def _object(self, address: Mapping[str, Any]) -> Annotation:
        if "pk" in address:
            found: Annotation = super()._object(address)
            return found
        form = AboutForm(self.request.POST)
        columns = form.columns(self.operation) if form.is_valid() else None
        if columns is None:
            raise Http404
        annotation: Annotation = self.operation.on.rows().model(**columns)
        return annotation


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that an annotation can be about, as the form offers it."""

    value: str
    label: Text


@dataclass(frozen=True, slots=True)
class AnnotationPanel:
    """`choices` empty: there is nothing to write about. `refusal`: why this person may only read."""

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
    GROUP: gettext_lazy("the whole error group"),
    WHOLE: gettext_lazy("the whole setting"),
}


def panel_of(
    request: HttpRequest, setting_key: str, *, fingerprint: str = "", message_key: str = ""
) -> AnnotationPanel:
    """Returns what is known of them, narrow things first, and the forms to add to it."""
    wanted = Q(message_key="", fingerprint="")
    if message_key:
        wanted |= Q(message_key=message_key)
    if fingerprint:
        wanted |= Q(fingerprint=fingerprint)

    def of(rows: QuerySet[Any]) -> list[Any]:
        return list(rows.filter(wanted, setting_key=setting_key)[:SHOWN])

    named = {CASE: bool(message_key), GROUP: bool(fingerprint), WHOLE: bool(setting_key)}
    return AnnotationPanel(
        about={"setting": setting_key, "fingerprint": fingerprint, "message_key": message_key},
        choices=[Choice(value, LABELS[value]) for value, there in named.items() if there],
        notes=of(Note.objects.all()),
        faults=of(active_faults(timezone.now())),
        takings=of(open_takings().filter(trip=None)),
        refusal=why_not_annotate(request.user, setting_key)
        if setting_key
        else _("Notes not available: the message belongs to no setting."),
        back=request.get_full_path(),
        lasts=OPEN_ENDED,
    )


def panel_of_letter(request: HttpRequest, letter: DeadLetter) -> AnnotationPanel:
    return panel_of(
        request, letter.setting_key, fingerprint=letter.fingerprint, message_key=letter.message_key
    )


# -- what the pages of trips show: who has taken which -------------------------------------------------------


def trip_panel(request: HttpRequest, trip: BreakerTrip) -> Panel | None:
    """Only while it is open: nobody takes what is over."""
    key = trip.setting.key
    taken = open_takings().filter(trip=trip.pk).first()
    if not may_read(request.user, key) or (trip.ended_at and not taken):
        return None
    panel = AnnotationPanel(
        about={"setting": key},
        choices=[] if taken else [Choice(WHOLE, "")],
        notes=[],
        faults=[],
        takings=[taken] if taken else [],
        refusal=why_not_annotate(request.user, key),
        back=request.get_full_path(),
        lasts=[],
        trip=trip.pk,
    )
    return {
        "title": str(_("Assignee")),
        "template": "dlq/annotations.html",
        "context": {"annotation_panel": panel},
    }


def takers_of_trips(request: HttpRequest, trips: Sequence[BreakerTrip]) -> dict[int, str]:
    """Returns them in two queries, of the settings whose dead letters this person may see."""
    taken = open_takings().filter(trip__in=[trip.pk for trip in trips])
    seen = settings_for(request.user, rights.SEE).order_by().values("key")
    return {
        trip: name for trip, name in taken.filter(setting_key__in=seen).values_list("trip", "by_name") if trip
    }
