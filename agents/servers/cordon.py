"""Describes what a server is let do: nothing new begins on a cordoned one; from a draining one its runs move
or end.

The duty is a wish of the MA: planning follows it, a KMA knows nothing of it. Killed after the commit and
before the planning, `agents.tend` plans.
"""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext

from agents.activations.plan import plan_open_activations
from agents.isolation import isolated
from agents.models import Duty, Server
from agents.reasons import TIME_OVER, UNTIL
from agents.state_history import note, why_of
from console.audit.log import Record, no_record
from console.operations.refusals import Refused
from console.reasons import NO_REASON, Reason


def set_duty(
    server: Server,
    duty: Duty,
    by: Any,
    now: datetime,
    *,
    reason: str = "",
    until: datetime | None = None,
    record: Record = no_record,
) -> bool:
    """Returns whether something changed. `until`: then it is back in service by itself. Raises Refused: that
    is past."""
    if until is not None and until <= now:
        raise Refused("until_is_past", gettext("The end is in the past."), gettext("Choose a later instant."))
    current = Server.objects.get(pk=server.pk)
    if (current.duty, current.duty_reason, current.duty_until) == (duty, reason, until):
        return False
    why = UNTIL(why=why_of(by, reason), until=f"{until:%Y-%m-%d %H:%M} UTC") if until else why_of(by, reason)
    return _change(current, duty, by, reason, until, now, why=why, record=record)


def expire_duties(now: datetime) -> int:
    """Takes servers back whose time is over; how many."""
    over = Server.objects.filter(duty_until__lte=now).exclude(duty=Duty.ACTIVE)
    back = 0
    for server in list(over):
        with isolated("duties", server=server.name):
            back += _change(server, Duty.ACTIVE, None, "", None, now, why=TIME_OVER())
    return back


def _change(
    seen: Server, duty: Duty, by: Any, reason: str, until: datetime | None, now: datetime,
    *, why: Reason = NO_REASON, record: Record = no_record,
) -> bool:  # fmt: skip
    """Lets the first of two win that come at once, each based on what it saw."""
    person = by if getattr(by, "pk", None) else None
    values = {
        "duty": duty,
        "duty_reason": reason,
        "duty_until": until,
        "duty_by": None if duty == Duty.ACTIVE else person,
        "duty_since": now,
    }
    with transaction.atomic():
        unchanged = Server.objects.filter(pk=seen.pk, duty=seen.duty, duty_since=seen.duty_since)
        if unchanged.update(**values) != 1:
            return False
        note(None, "server", seen.duty, duty.value, now=now, reason=why, by=person, server=seen)
        record()
    plan_open_activations(now, seen)
    return True
