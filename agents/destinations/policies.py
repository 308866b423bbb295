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

import structlog
from django.conf import settings
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import Destination, FoundPolicy, StateChange
from agents.provisioning.topology import save_destination
from agents.state_history import note
from broker.management.desired_topology import DEAD_LETTER_SETTINGS, Policy, destination_policy
from broker.management.topology import apply, found_policy
from broker.port import BrokerError
from console.audit.log import Record, no_record
from console.audit.saves import RowKind
from console.broker import management
from console.operations.refusals import Refused
from console.processes import lock
from console.reasons import Reason, said

# -- broker side of the policies -----------------------------------------------------------------------------
# Read once a minute; differences are kept. Nothing is changed on the broker: a person decides which side is
# right.


log = structlog.get_logger(__name__)

HELD_FOR = timedelta(minutes=2)
# What was seen longer ago says nothing of now: three looks were missed.
KNOWN = timedelta(minutes=4)


def watch_policies(now: datetime) -> int:
    """Returns how many addresses differ. While the broker is away the rows stay as they are, and grow old."""
    with lock("policies", HELD_FOR) as free:
        if not free:
            return 0
        wanted = list(_wanted())
        FoundPolicy.objects.exclude(address__in=[step.address for step in wanted]).delete()
        try:
            return sum(read_broker_side(step, now) for step in wanted)
        except BrokerError as error:
            log.info("policies not checked", reason=str(error))
            return 0


def read_broker_side(step: Policy, now: datetime) -> bool:
    """Returns whether the broker has other values than `step`. Raises BrokerError."""
    found = found_policy(management(), step.address)
    differing = [name for name, value in step.settings.items() if found.get(name) != value]
    kept = {name: found.get(name) for name in step.settings}
    row, made = FoundPolicy.objects.get_or_create(address=step.address, defaults={"seen_at": now})
    since = (row.differs_since or now) if differing else None
    FoundPolicy.objects.filter(pk=row.pk).update(
        found=kept, differing=differing, seen_at=now, differs_since=since
    )
    if differing and (made or row.differs_since is None):
        log.warning("address settings on the broker differ", address=step.address, differing=differing)
    return bool(differing)


def policy_of(destination: Destination) -> Policy:
    return destination_policy(
        destination.name, destination.policy, settings.MA_DLA_ADDRESS, destination.expiry_ms
    )


def drifting(now: datetime) -> list[FoundPolicy]:
    """Addresses that were seen lately and were not as wanted, the longest first."""
    seen = FoundPolicy.objects.filter(differs_since__isnull=False, seen_at__gt=now - KNOWN)
    return list(seen.order_by("differs_since", "address"))


def policies_are_known(now: datetime) -> bool:
    """Returns whether anything was read lately: else nobody can say what differs."""
    return FoundPolicy.objects.filter(seen_at__gt=now - KNOWN).exists()


def _wanted() -> Iterator[Policy]:
    """What nobody waits for any more: a destination whose setting is still to be provisioned is not wrong
    yet."""
    yield Policy(settings.MA_DLA_ADDRESS, DEAD_LETTER_SETTINGS)
    made = Destination.objects.filter(settings__isnull=False).exclude(settings__provision_state="pending")
    for destination in made.distinct():
        yield policy_of(destination)


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
    """Returns whether the MA keeps a policy on the broker for it: with the first setting that receives from
    it."""
    return destination.settings.exists()


def policy_lines(destination: Destination, found: Mapping[str, Any]) -> list[PolicyLine]:
    wanted = policy_of(destination).settings
    return [
        PolicyLine(name, ADOPTED.get(name, ("",))[0], value, found.get(name))
        for name, value in wanted.items()
    ]


def read_policy(destination: Destination) -> dict[str, Any]:
    """Returns what is in effect on the broker. Raises BrokerError."""
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
        changes = _changes([line for line in _as_read(destination, seen) if line.differs])
        with transaction.atomic():
            record()
            _note(destination, "applying", by, now, said(changes))
        try:
            apply(management(), [policy_of(destination)])
            read_broker_side(policy_of(destination), now)
        except BrokerError as error:
            _note(destination, "apply_failed", by, now, said(str(error)))
            raise Refused(
                "broker", _("The broker rejected the policy: %(why)s.") % {"why": error}, _read_again()
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
    """Locks out other writers to the broker. Raises Refused."""
    with lock("provision", HELD_FOR) as free:
        if not free:
            raise Refused(
                "busy", _("The broker is being provisioned right now."), _("Try again in a moment.")
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
            reason = _("Nothing to adopt: the fields of this destination match the values on the broker.")
            raise Refused(
                "same",
                reason,
                _("The remaining differences are in values that only the MA sets. Write them to the broker."),
            )
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
                _("The broker's policy cannot be adopted: %(why)s") % {"why": why},
                _read_again(),
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


def _read_again() -> str:
    return _("Reload the page.")


def _ask(destination: Destination) -> dict[str, Any]:
    if not is_made(destination):
        raise Refused(
            "not_made",
            _("No setting receives messages from this destination, so it does not exist on the broker."),
            "",
        )
    try:
        return read_policy(destination)
    except BrokerError as error:
        raise Refused(
            "broker",
            _("Cannot read the policy from the broker: %(why)s.") % {"why": error},
            _("Try again later."),
        ) from error


def _as_read(destination: Destination, seen: str) -> list[PolicyLine]:
    return _checked(destination, _ask(destination), seen)


def _checked(destination: Destination, found: Mapping[str, Any], seen: str) -> list[PolicyLine]:
    lines = policy_lines(destination, found)
    if mark_of(lines) != seen:
        raise Refused(
            "changed",
            _("Nothing was done: the values have changed since you opened the page."),
            _read_again(),
        )
    if not any(line.differs for line in lines):
        raise Refused("same", _("Nothing was done: the policy on the broker is already in sync."), "")
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
    """Notes it in the history of every setting that shares it."""
    with transaction.atomic():
        for setting in destination.settings.all():
            note(setting, "policy", "", new, now=now, reason=reason, by=by)
