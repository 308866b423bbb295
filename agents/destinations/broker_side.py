"""The broker's own settings of a destination beside what is wanted."""

from dataclasses import dataclass, field
from typing import Any

from django.contrib.admin.utils import label_for_field
from django.utils.translation import gettext as _

from agents.destinations.policies import PolicyLine, is_made, mark_of, policy_lines, read_policy
from agents.models import Destination
from broker.port import BrokerError
from console.broker import with_timeout
from console.ui import amounts
from console.ui.page import Text

MILLISECONDS = ("redeliveryDelay", "maxRedeliveryDelay", "expiryDelay")


@dataclass(frozen=True, slots=True)
class PolicyRow:
    label: Text
    name: str
    wanted: str
    found: str
    differs: bool


@dataclass(frozen=True, slots=True)
class BrokerSide:
    """`problem`: why the broker does not tell what it has; `lines` then show what is wanted alone. `made`
    False: the MA keeps nothing there yet. `mark` is of `agents.destinations.policies`."""

    lines: list[PolicyRow] = field(default_factory=list)
    drift: int = 0
    problem: str = ""
    made: bool = True
    mark: str = ""
    adoptable: bool = False


def broker_side(destination: Destination) -> BrokerSide:
    """Asks the broker, for a moment."""
    if not is_made(destination):
        return BrokerSide(made=False)
    try:
        found = with_timeout(lambda: read_policy(destination))
    except BrokerError as error:
        shown = [_policy_row(line, known=False) for line in policy_lines(destination, {})]
        return BrokerSide(shown, problem=str(error))
    lines = policy_lines(destination, found)
    return BrokerSide(
        lines=[_policy_row(line) for line in lines],
        drift=sum(line.differs for line in lines),
        mark=mark_of(lines),
        adoptable=any(line.differs and line.field for line in lines),
    )


def _policy_row(line: PolicyLine, *, known: bool = True) -> PolicyRow:
    label = str(label_for_field(line.field, Destination)) if line.field else _ours().get(line.name, "")
    found = _value(line.name, line.found) if known else "—"
    return PolicyRow(label, line.name, _value(line.name, line.wanted), found, known and line.differs)


def _ours() -> dict[str, str]:
    return {
        "deadLetterAddress": _("dead-letter address"),
        "expiryAddress": _("address of what expired"),
        "addressFullMessagePolicy": _("when its memory is full"),
        "autoCreateQueues": _("makes queues by itself"),
        "autoDeleteQueues": _("removes queues by itself"),
        "autoCreateAddresses": _("makes addresses by itself"),
        "autoDeleteAddresses": _("removes addresses by itself"),
    }


def _value(name: str, value: Any) -> str:
    if value is None:
        return _("not set")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if name == "expiryDelay" and value < 0:
        return _("never")
    if name == "maxDeliveryAttempts" and value < 0:
        return _("without end")
    if name in MILLISECONDS:
        return amounts.duration(value / 1000)
    return amounts.number(value, 3) if isinstance(value, int | float) else str(value)
