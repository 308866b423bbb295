"""Describes what people write on dead letters, groups and trips: notes, faults that are known, and who works
on what.

The object of what adds one is the row as it would be: it says what it is about, and the audit names every
one by that.

All of it is about a case (a message key), a fingerprint, or a setting whole, never about one row of the
index: it outlives replays, purges and rebuilds.
"""

from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.models import BreakerTrip, LaunchSetting
from agents.pools.rights import check_anywhere, settings_for
from agents.pools.rights import why_not as why_not_of_setting
from console.operations.inputs import OtherText, TextInput, Until
from console.operations.operation import Act, Done, ModelPermission, Operation, Resource
from console.operations.refusals import Refused, WronglyAsked
from contract.typed import storable
from dlq.models import KnownFault, Note, Taking
from dlq.models.annotation import Annotation, active_faults, open_takings
from dlq.rights import GIVE_BACK, SEE
from dlq.search.visibility import SEE_ALL, sees_all

AnyAnnotation = TypeVar("AnyAnnotation", bound=Annotation)
LONGEST = 4000
LONGEST_TICKET = 200
LONGEST_PERSON = 150
# Of a setting that is gone, or of dead letters that have none.
ANYWHERE = {
    SEE: ModelPermission(SEE_ALL, _("Can view dead letter")),
    GIVE_BACK: ModelPermission("dlq.give_back", _("Can replay dead letters")),
}


def may_read(user: Any, setting_key: str) -> bool:
    return not _why_not(user, setting_key, SEE)


def why_not_annotate(user: Any, setting_key: str) -> str:
    """Returns text beside a disabled button; empty when this person may."""
    return _why_not(user, setting_key, SEE, GIVE_BACK)


def _why_not(user: Any, setting_key: str, *actions: str) -> str:
    """Returns the first refusal of `actions`."""
    setting = LaunchSetting.objects.select_related("pool").filter(key=setting_key).first()
    reasons = (
        why_not_of_setting(user, action, setting) if setting else ANYWHERE[action].why_not(user, None)
        for action in actions
    )
    return next(filter(None, reasons), "")


class MayAnnotate:
    def why_not(self, user: Any, annotation: Annotation) -> str:
        return why_not_annotate(user, annotation.setting_key)


def readable(rows: QuerySet[AnyAnnotation], user: Any) -> QuerySet[AnyAnnotation]:
    if sees_all(user):
        return rows
    return rows.filter(setting_key__in=settings_for(user, SEE).values("key"))


def visible(rows: QuerySet[AnyAnnotation], user: Any) -> QuerySet[AnyAnnotation]:
    """The same. Raises PermissionDenied for who may see no dead letters at all."""
    check_anywhere(user, SEE)
    return readable(rows, user)


def of_trip(number: int) -> dict[str, Any]:
    """The columns of what is about this trip. Raises Http404."""
    trip = get_object_or_404(BreakerTrip.objects.select_related("setting"), pk=number)
    return {"setting_key": trip.setting.key, "trip": trip.pk}


class _Annotations(Resource[AnyAnnotation]):
    """They stand on the pages of what they are about."""

    def __post_init__(self) -> None:
        """Names no object that an entry of the audit could lead to."""

    def target(self, annotation: AnyAnnotation) -> str:
        return annotation.target


def _annotations(name: str, model: type[AnyAnnotation]) -> _Annotations[AnyAnnotation]:
    rows = model._default_manager.all
    return _Annotations(
        name=name,
        rows=rows,
        key="pk",
        route="",
        view="",
        list_page="dead_letters",
        title=_("Dead letters"),
        setting_key=lambda annotation: annotation.setting_key,
        visible=lambda user: visible(rows(), user),
    )


NOTES = _annotations("note", Note)
FAULTS = _annotations("known_fault", KnownFault)
TAKINGS = _annotations("taking", Taking)


class _OfAnnotation(Operation[AnyAnnotation]):
    permission, immediate = MayAnnotate(), True


class AddNote(_OfAnnotation[Note]):
    """Adds a note, which is never changed afterwards."""

    code, label, on = "note.add", _("note"), NOTES
    address = "remarks/note/"
    inputs = {"text": TextInput(_("Note"), LONGEST, long=True, untold=True)}

    def run(self, note: Note, act: Act, *, text: str, **inputs: Any) -> Done:
        _sign(note, act)
        note.text = _cleaned(text)
        if not note.text:
            raise WronglyAsked("empty", gettext("The note is empty. Enter some text."))
        with transaction.atomic():
            note.save()
            act.record(note=note.pk)
        return Done(_("Note saved."), note)


class MuteLetters(_OfAnnotation[KnownFault]):
    """Marks dead letters as known: lists can hide them, and replays skip them. 409 if they are known
    already."""

    code, label, on = "dead_letters.mute", _("mark as known"), FAULTS
    address = "remarks/mute/"
    inputs = {
        "ticket": TextInput(_("Ticket"), LONGEST_TICKET, untold=True),
        "text": TextInput(_("Notes"), LONGEST, long=True, untold=True),
        "until": Until(),
    }

    def run(self, fault: KnownFault, act: Act, *, ticket: str, text: str, until: Any, **inputs: Any) -> Done:
        """Two people at once make one (a unique constraint)."""
        _sign(fault, act)
        if until is not None and until <= act.now:
            raise WronglyAsked(
                "past",
                gettext("The end time is in the past."),
                gettext("Choose a later time or leave the end time empty."),
            )
        fault.ticket, fault.text, fault.until = _cleaned(ticket), _cleaned(text), until
        act.reason = " · ".join(filter(None, (fault.ticket, fault.text)))
        try:
            with transaction.atomic():
                # The row of one that is over would hold the place of the new one.
                over = KnownFault.objects.filter(**fault.named, ended_at=None, until__lte=act.now)
                over.update(ended_at=F("until"))
                fault.save()
                act.record(fault=fault.pk)
        except IntegrityError as error:
            raise Refused(
                "exists",
                gettext("The error is already marked as known."),
                gettext("Remove the existing mark first."),
            ) from error
        return Done(
            _("The error is marked as known. Its messages are marked in lists and skipped in replays."), fault
        )


class Unmute(_OfAnnotation[KnownFault]):
    """Ends the known error. 409 if it has ended already, also by its date."""

    code, label, on = "dead_letters.unmute", _("unmark as known"), FAULTS
    address = "remarks/faults/<int:pk>/end/"

    @transaction.atomic
    def run(self, fault: KnownFault, act: Act, **inputs: Any) -> Done:
        if not active_faults(act.now).filter(pk=fault.pk).update(ended_at=act.now, ended_by=act.by):
            raise _over()
        act.record(fault=fault.pk)
        return Done(_("No longer marked as known."))


class _OfTaking(_OfAnnotation[Taking]):
    on = TAKINGS

    def detail(self, taking: Taking) -> dict[str, Any]:
        return {"trip": taking.trip} if taking.trip is not None else {}


class Take(_OfTaking):
    """Assigns to the user. 409 if somebody is assigned already."""

    code, label = "assignment.take", _("assignee set")
    address = "remarks/take/"
    inputs = {"text": TextInput(_("Note for the team"), LONGEST, long=True, untold=True)}

    def run(self, taking: Taking, act: Act, *, text: str, **inputs: Any) -> Done:
        """Lets one of two people at once have it (a unique constraint); the other sees who."""
        _sign(taking, act)
        taking.text = act.reason = _cleaned(text)
        try:
            with transaction.atomic():
                taking.save()
                act.record(taking=taking.pk)
        except IntegrityError as error:
            held = open_takings().filter(**taking.named, trip=taking.trip).first()
            reason = gettext("Already assigned to %(name)s.") % {"name": held.by_name if held else "?"}
            raise Refused(
                "exists",
                reason,
                gettext("Ask the current assignee to assign you instead, or unassign them first."),
            ) from error
        return Done(_("Assigned to you."), taking)


class HandOver(_OfTaking):
    """Ends this assignment and returns that of the new assignee. `text` replaces the note; without it the
    note stays. Every user with the permission may hand over, not only the assignee."""

    code, label = "assignment.hand_over", _("assignee changed")
    address = "remarks/takings/<int:pk>/hand-over/"
    inputs = {
        "to": TextInput(_("New assignee"), LONGEST_PERSON, required=True),
        "text": OtherText(_("Note for the team"), LONGEST, long=True, untold=True),
    }

    def hidden(self, taking: Taking) -> frozenset[str]:
        return frozenset({"text"})

    def run(self, taking: Taking, act: Act, *, to: str, text: str | None, **inputs: Any) -> Done:
        person = User.objects.filter(username=to, is_active=True).first()
        if person is None:
            raise WronglyAsked(
                "no_person", gettext("User “%(name)s” not found. Check the name.") % {"name": to}
            )
        if not may_read(person, taking.setting_key):
            raise WronglyAsked(
                "no_person",
                gettext(
                    "Cannot reassign to %(name)s: they have no permission to view these messages. Choose "
                    "another assignee."
                )
                % {"name": to},
            )
        act.reason = taking.text if text is None else _cleaned(text)
        facts = taking.named | {"by_name": to, "text": act.reason}
        with transaction.atomic():
            if not open_takings().filter(pk=taking.pk).update(ended_at=act.now, handed_to=person):
                raise _over()
            given = Taking.objects.create(**facts, trip=taking.trip, by=person, at=act.now)
            act.record(taking=given.pk)
        return Done(gettext("Reassigned to %(name)s.") % {"name": to}, given)


class EndTaking(_OfTaking):
    """Ends the assignment."""

    code, label = "assignment.end", _("assignee removed")
    address = "remarks/takings/<int:pk>/end/"

    @transaction.atomic
    def run(self, taking: Taking, act: Act, **inputs: Any) -> Done:
        if not open_takings().filter(pk=taking.pk).update(ended_at=act.now):
            raise _over()
        act.record(taking=taking.pk)
        return Done(_("Assignee removed."))


def _sign(annotation: Annotation, act: Act) -> None:
    """Sets whose it is. Raises WronglyAsked where it is about nothing, or about two things."""
    if not annotation.setting_key or (annotation.fingerprint and annotation.message_key):
        raise WronglyAsked(
            "nothing_named",
            gettext("Specify a setting and at most one of these: a fingerprint or a message key."),
        )
    annotation.by, annotation.at = act.by, act.now
    annotation.by_name = act.by.get_username() if act.by is not None else ""


def _cleaned(text: str) -> str:
    return storable(text).strip()


def _over() -> Refused:
    return Refused(
        "ended", gettext("This entry is already closed."), gettext("Refresh to see the current state.")
    )
