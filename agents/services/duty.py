"""What people let a server do: nothing new begins on a cordoned one; from a draining one its runs move or
end.

The duty is a wish of the MA: planning follows it, a KMA knows nothing of it. Killed after the commit and
before the planning, `agents.tend` plans.
"""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import Duty, Server
from agents.reasons import TIME_OVER, UNTIL
from agents.services.history import note
from agents.services.isolating import isolated
from agents.services.planning import plan_open_activations
from agents.services.switching import Refused
from console.reasons import NO_REASON, Reason, said


def cordon(server: Server, by: Any, reason: str, until: datetime | None, now: datetime) -> bool:
    """Whether something changed. Runs there stay. `until`: then it is back by itself. Raises Refused: that is
    past."""
    return _change(server, Duty.CORDONED, by, reason, until, now)


def drain(server: Server, by: Any, reason: str, until: datetime | None, now: datetime) -> bool:
    """Whether something changed. Runs of ANY move to another able server, where there is one; those of MANY
    end in order. Raises Refused: `until` is past."""
    return _change(server, Duty.DRAINING, by, reason, until, now)


def back(server: Server, by: Any, now: datetime) -> bool:
    """Whether it was out of service."""
    return _change(server, Duty.ACTIVE, by, "", None, now)


def expire_duties(now: datetime) -> int:
    """Takes servers back whose time is over; how many."""
    over = Server.objects.filter(duty_until__lte=now).exclude(duty=Duty.ACTIVE)
    back_now = 0
    for server in list(over):
        with isolated("duties", server=server.name):
            back_now += _set(server, Duty.ACTIVE, None, "", None, now, why=TIME_OVER())
    return back_now


def _change(server: Server, duty: Duty, by: Any, reason: str, until: datetime | None, now: datetime) -> bool:
    if until is not None and until <= now:
        raise Refused("until_is_past", _("The end is in the past."), _("Choose a later instant."))
    current = Server.objects.get(pk=server.pk)
    if (current.duty, current.duty_reason, current.duty_until) == (duty, reason, until):
        return False
    return _set(current, duty, by, reason, until, now)


def _set(
    seen: Server, duty: Duty, by: Any, reason: str, until: datetime | None, now: datetime,
    *, why: Reason = NO_REASON,
) -> bool:  # fmt: skip
    """Of two at once, both based on what they saw, the first wins."""
    person = by if getattr(by, "pk", None) else None
    in_service = duty == Duty.ACTIVE
    values = {
        "duty": duty,
        "duty_reason": reason,
        "duty_until": until,
        "duty_by": None if in_service else person,
        "duty_since": now,
    }
    with transaction.atomic():
        unchanged = Server.objects.filter(pk=seen.pk, duty=seen.duty, duty_since=seen.duty_since)
        if unchanged.update(**values) != 1:
            return False
        if until:
            why = UNTIL(why=said(reason), until=f"{until:%Y-%m-%d %H:%M} UTC")
        note(
            None, "server", seen.duty, duty.value, now=now, reason=why or said(reason), by=person, server=seen
        )
    plan_open_activations(now, seen)
    return True
