"""The policy of a destination as the broker has it: beside what is wanted, written to it, or taken over from
it.

Nothing but the broker and the rows decides: an `apply` that is killed leaves the note that it was begun, and
the broker as it was or as wanted; doing it again is harmless. `adopt` is one transaction.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import Destination, StateChange
from agents.services.history import note
from agents.services.policy_drift import look_at_policy, policy_of
from agents.services.wishes import save_destination
from broker.errors import BrokerError
from broker.topology import apply, found_policy
from console.audit.log import Record, no_record
from console.audit.saves import RowKind
from console.broker import management
from console.jobs.locks import lock
from console.operations.refusals import Refused
from console.reasons import Reason, said

HELD_FOR = timedelta(minutes=2)
# By the names of the broker's JSON, what it means where nobody has ever set it. What is not here is ours
# alone.
ADOPTED: dict[str, tuple[str, Any]] = {
    "maxDeliveryAttempts": ("max_attempts", 10),
    "redeliveryDelay": ("delay_ms", 0),
    "redeliveryMultiplier": ("multiplier", 1.0),
    "maxRedeliveryDelay": ("max_delay_ms", -1),
    "redeliveryCollisionAvoidanceFactor": ("collision_avoidance", 0.0),
    "expiryDelay": ("expiry_ms", -1),
}


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """One setting of the address. `name` is the broker's, `field` that of the destination (empty: it is
    always the MA's). `found` None: the broker did not tell."""

    name: str
    field: str
    wanted: Any
    found: Any = None

    @property
    def differs(self) -> bool:
        return bool(self.found != self.wanted)


def is_made(destination: Destination) -> bool:
    """Whether the MA keeps a policy on the broker for it: with the first setting that receives from it."""
    return destination.settings.exists()


def policy_lines(destination: Destination, found: Mapping[str, Any]) -> list[PolicyLine]:
    wanted = policy_of(destination).settings
    return [
        PolicyLine(name, ADOPTED.get(name, ("",))[0], value, found.get(name))
        for name, value in wanted.items()
    ]


def read_policy(destination: Destination) -> dict[str, Any]:
    """What is in effect on the broker. Raises BrokerError."""
    return found_policy(management(), destination.name)


def mark_of(lines: list[PolicyLine]) -> str:
    """What a person saw, wanted and found: who confirms something confirms just that."""
    seen = [[line.name, line.wanted, line.found] for line in lines]
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:32]


def apply_policy(
    destination: Destination, seen: str, by: Any, now: datetime, record: Record = no_record
) -> None:
    """Writes what is wanted to the broker and reads it back. Raises Refused."""
    with _nobody_else_writes():
        destination.refresh_from_db()
        changes = _changes([line for line in _looked_at(destination, seen) if line.differs])
        with transaction.atomic():
            record()
            _note(destination, "applying", by, now, said(changes))
        try:
            apply(management(), [policy_of(destination)])
            look_at_policy(policy_of(destination), now)
        except BrokerError as error:
            _note(destination, "apply_failed", by, now, said(str(error)))
            raise Refused(
                "broker", _("The broker did not take it: %(why)s.") % {"why": error}, _look_again()
            ) from error
        _note(destination, "applied", by, now, said(changes))


def adopt_policy(
    destination: Destination, seen: str, by: Any, now: datetime, record: Record = no_record
) -> None:
    """Makes what the broker has the wish. What is always the MA's stays so, and is written to the broker by
    the worker as after any change of a destination. Raises Refused."""
    with _nobody_else_writes():
        _adopt(destination, seen, by, now, record)


@contextmanager
def _nobody_else_writes() -> Iterator[None]:
    """To the broker. Raises Refused."""
    with lock("provision", HELD_FOR) as free:
        if not free:
            raise Refused(
                "busy", _("The broker is being provisioned at this moment."), _("Try again in a moment.")
            )
        yield


def _adopt(destination: Destination, seen: str, by: Any, now: datetime, record: Record) -> None:
    """While nobody writes to the broker."""
    found = _ask(destination)
    with transaction.atomic():
        destination = Destination.objects.select_for_update().get(pk=destination.pk)
        lines = _checked(destination, found, seen)
        adopted = [line for line in lines if line.field and line.differs]
        if not adopted:
            reason = _("The fields of this destination are as the broker has them.")
            raise Refused("same", reason, _("What else differs is always the MA's: apply it."))
        for name, value in _fields(destination, found).items():
            setattr(destination, name, value)
        try:
            destination.full_clean()
        except ValidationError as error:
            why = "; ".join(
                f"{_label(name)}: {' '.join(texts)}" for name, texts in error.message_dict.items()
            )
            raise Refused(
                "invalid",
                _("The broker has what is not possible here: %(why)s") % {"why": why},
                _look_again(),
            ) from error
        save_destination(destination)
        _note(destination, "adopted", by, now, said(_changes(adopted, back=True)))
        record()


def policy_changes(destination: Destination, most: int) -> list[StateChange]:
    """The last things that people did here, newest first: once, though each setting that shares it has a
    row."""
    rows = StateChange.objects.filter(what="policy", setting__destination=destination.pk).select_related("by")
    once: dict[tuple[datetime, str], StateChange] = {}
    for row in rows[: 20 * most]:
        once.setdefault((row.at, row.new), row)
    return list(once.values())[:most]


def _label(field: str) -> str:
    return str(RowKind.known[Destination].label(field)) if field != NON_FIELD_ERRORS else ""


def _look_again() -> str:
    return _("Look at the page again.")


def _ask(destination: Destination) -> dict[str, Any]:
    if not is_made(destination):
        raise Refused("not_made", _("No setting receives from it: the broker has not made it."), "")
    try:
        return read_policy(destination)
    except BrokerError as error:
        raise Refused(
            "broker", _("The broker cannot be asked: %(why)s.") % {"why": error}, _("Try again later.")
        ) from error


def _looked_at(destination: Destination, seen: str) -> list[PolicyLine]:
    return _checked(destination, _ask(destination), seen)


def _checked(destination: Destination, found: Mapping[str, Any], seen: str) -> list[PolicyLine]:
    lines = policy_lines(destination, found)
    if mark_of(lines) != seen:
        raise Refused(
            "changed", _("Something has changed since you looked: nothing was done."), _look_again()
        )
    if not any(line.differs for line in lines):
        raise Refused("same", _("The broker has what is wanted: nothing was done."), "")
    return lines


def _fields(destination: Destination, found: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the columns. Below 0 is the broker's word for none, but for the attempts."""
    values = {field: found.get(name, default) for name, (field, default) in ADOPTED.items()}
    for field in ("max_delay_ms", "expiry_ms"):
        if values[field] < 0:
            values[field] = None
    if destination.max_delay_ms is None and values["max_delay_ms"] == 10 * values["delay_ms"]:
        values["max_delay_ms"] = None
    return values


def _changes(lines: list[PolicyLine], *, back: bool = False) -> str:
    pairs = [
        (line.name, *((line.wanted, line.found) if back else (line.found, line.wanted))) for line in lines
    ]
    return "; ".join(f"{name}: {old} → {new}" for name, old, new in pairs)


def _note(destination: Destination, new: str, by: Any, now: datetime, reason: Reason) -> None:
    """In the history of every setting that shares it."""
    with transaction.atomic():
        for setting in destination.settings.all():
            note(setting, "policy", "", new, now=now, reason=reason, by=by)
