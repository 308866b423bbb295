"""Known faults: "known, being worked on". Their letters are muted: lists can leave them out, and giving back
does.

A fault ends by a person or by its own date, whatever comes first. The date needs nobody: every question
compares it with the time, so a fault is over at that instant though its row still says that nobody ended it.
"""

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from dlq.models import DeadLetter, KnownFault
from dlq.remarks.about import LONGEST_TICKET, About, RemarkRefused, check, cleaned, name_of, told


def active_faults(now: datetime) -> QuerySet[KnownFault]:
    return KnownFault.objects.filter(Q(until=None) | Q(until__gt=now), ended_at=None)


def mute(
    about: About, *, ticket: str = "", text: str = "", until: datetime | None = None, by: Any, now: datetime
) -> KnownFault:
    """Raises RemarkRefused, also when it is known already: two people at once make one (a unique
    constraint)."""
    check("mute", about, by, now)
    if until is not None and until <= now:
        raise RemarkRefused("past", _("That moment is over."), _("Choose a later one, or none."))
    facts = {"ticket": cleaned(ticket, LONGEST_TICKET), "text": cleaned(text), "until": until}
    try:
        with transaction.atomic():
            _end_expired(about, now)
            fault = KnownFault.objects.create(**about.named, **facts, by=by, by_name=name_of(by), at=now)
            detail = {"fault": fault.pk, "until": until.isoformat() if until else None}
            told(
                "mute",
                about,
                by,
                now,
                reason=" · ".join(filter(None, [fault.ticket, fault.text])),
                detail=detail,
            )
    except IntegrityError as error:
        raise RemarkRefused("exists", _("It is known already."), _("End that first.")) from error
    return fault


def _end_expired(about: About, now: datetime) -> None:
    """Its row would hold the place of the new one."""
    KnownFault.objects.filter(**about.named, ended_at=None, until__lte=now).update(ended_at=F("until"))


def end_fault(fault: KnownFault, *, by: Any, now: datetime) -> None:
    """Raises RemarkRefused; also when somebody, or its date, was first."""
    about = About(fault.setting_key, fault.fingerprint, fault.message_key)
    check("unmute", about, by, now)
    with transaction.atomic():
        if not active_faults(now).filter(pk=fault.pk).update(ended_at=now, ended_by=by):
            raise RemarkRefused("ended", _("It has ended already."))
        told("unmute", about, by, now, detail={"fault": fault.pk})


def fault_of_row(now: datetime) -> QuerySet[KnownFault]:
    """For a query on dead letters. One without a key or a fingerprint is muted with its whole setting
    only."""
    case = Q(message_key=OuterRef("message_key")) & ~Q(message_key="")
    group = Q(fingerprint=OuterRef("fingerprint")) & ~Q(fingerprint="")
    everything = Q(message_key="", fingerprint="")
    return active_faults(now).filter(case | group | everything, setting_key=OuterRef("setting_key"))


def muted(letters: QuerySet[DeadLetter], now: datetime) -> QuerySet[DeadLetter]:
    return letters.filter(Exists(fault_of_row(now)))


def not_muted(letters: QuerySet[DeadLetter], now: datetime) -> QuerySet[DeadLetter]:
    return letters.filter(~Exists(fault_of_row(now)))


def fault_of(letter: DeadLetter, now: datetime) -> KnownFault | None:
    """The narrowest that mutes it: of its case, else of its fingerprint, else of its setting."""
    wanted = Q(message_key="", fingerprint="")
    if letter.message_key:
        wanted |= Q(message_key=letter.message_key)
    if letter.fingerprint:
        wanted |= Q(fingerprint=letter.fingerprint)
    found = active_faults(now).filter(wanted, setting_key=letter.setting_key)
    return found.order_by("-message_key", "-fingerprint").first()


def is_muted(letter: DeadLetter, now: datetime) -> bool:
    return fault_of(letter, now) is not None
