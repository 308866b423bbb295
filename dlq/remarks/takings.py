"""Takings: who is at work on a trip, a fingerprint, a message or all of a setting. One person at a time."""

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import BreakerTrip
from dlq.models import Taking
from dlq.remarks.about import About, RemarkRefused, check, cleaned, may_read, name_of, told


def open_takings() -> QuerySet[Taking]:
    return Taking.objects.filter(ended_at=None)


def taking_of(about: About) -> Taking | None:
    return open_takings().filter(**about.named, trip=None).first()


def taking_of_trip(trip: BreakerTrip) -> Taking | None:
    return open_takings().filter(trip=trip.pk).first()


def about_trip(trip: BreakerTrip) -> About:
    return About(trip.setting.key)


def take(about: About, *, text: str = "", trip: BreakerTrip | None = None, by: Any, now: datetime) -> Taking:
    """Raises RemarkRefused; of two people at once one gets it (a unique constraint), the other is told
    who."""
    about = about_trip(trip) if trip else about
    check("take", about, by, now)
    words, number = cleaned(text), trip.pk if trip else None
    try:
        with transaction.atomic():
            taken = Taking.objects.create(
                **about.named, trip=number, text=words, by=by, by_name=name_of(by), at=now
            )
            told("take", about, by, now, reason=words, detail=_detail(taken))
    except IntegrityError as error:
        held = taking_of_trip(trip) if trip else taking_of(about)
        reason = _("%(name)s has taken it already.") % {"name": held.by_name if held else "?"}
        raise RemarkRefused("exists", reason, _("Ask them to hand it over, or end theirs.")) from error
    return taken


def hand_over(taking: Taking, to: User, *, text: str | None = None, by: Any, now: datetime) -> Taking:
    """Ends it and begins the same for `to`, in one transaction. Raises RemarkRefused.

    Not only its holder may: who took it may be asleep."""
    about = about_of(taking)
    check("hand_over", about, by, now)
    if not to.is_active or not may_read(to, taking.setting_key):
        raise RemarkRefused(
            "no_person", _("%(name)s may not see these letters.") % {"name": to.get_username()}
        )
    with transaction.atomic():
        if not open_takings().filter(pk=taking.pk).update(ended_at=now, handed_to=to):
            raise _over()
        words = taking.text if text is None else cleaned(text)
        given = Taking.objects.create(
            **about.named, trip=taking.trip, text=words, by=to, by_name=name_of(to), at=now
        )
        told("hand_over", about, by, now, reason=words, detail=_detail(given) | {"to": given.by_name})
    return given


def end_taking(taking: Taking, *, by: Any, now: datetime) -> None:
    about = about_of(taking)
    check("end_taking", about, by, now)
    with transaction.atomic():
        if not open_takings().filter(pk=taking.pk).update(ended_at=now):
            raise _over()
        told("end_taking", about, by, now, detail=_detail(taking))


def about_of(taking: Taking) -> About:
    return About(taking.setting_key, taking.fingerprint, taking.message_key)


def _over() -> RemarkRefused:
    return RemarkRefused("ended", _("It has ended already."), _("Look again."))


def _detail(taking: Taking) -> dict[str, Any]:
    return {"taking": taking.pk} | ({"trip": taking.trip} if taking.trip is not None else {})
