"""Describes what people do where the broker has another policy than is wanted: look at both, write it
there, or adopt what it has."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from django.contrib.admin.utils import label_for_field
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.destinations.policies import (
    PolicyLine,
    adopt_policy,
    apply_policy,
    is_made,
    mark_of,
    policy_lines,
    read_policy,
)
from agents.models import Destination
from broker.port import BrokerError
from console.broker import with_timeout
from console.operations.inputs import Seen
from console.operations.operation import Act, Done, ModelPermission, Operation, Question, Resource
from console.operations.refusals import Refused
from console.ui import amounts
from console.ui.page import Button, Text, link

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
        "deadLetterAddress": gettext("dead-letter address"),
        "expiryAddress": gettext("expiry address"),
        "addressFullMessagePolicy": gettext("when the address is full"),
        "autoCreateQueues": gettext("auto-create queues"),
        "autoDeleteQueues": gettext("auto-delete queues"),
        "autoCreateAddresses": gettext("auto-create addresses"),
        "autoDeleteAddresses": gettext("auto-delete addresses"),
    }


def _value(name: str, value: Any) -> str:
    if value is None:
        return gettext("not set")
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if name == "expiryDelay" and value < 0:
        return gettext("never")
    if name == "maxDeliveryAttempts" and value < 0:
        return gettext("unlimited")
    if name in MILLISECONDS:
        return amounts.duration(value / 1000)
    return amounts.number(value, 3) if isinstance(value, int | float) else str(value)


class _Destinations(Resource[Destination]):
    def crumbs(self, destination: Destination) -> list[tuple[Text, str]]:
        return [(_("Settings"), link("settings")), *super().crumbs(destination)]


DESTINATIONS = _Destinations(
    name="destination",
    rows=Destination.objects.all,
    key="pk",
    route="destinations/<int:pk>/",
    view="agents.view_destination",
    list_page="destinations",
    title=_("Destinations"),
    label=lambda destination: destination.name,
)


class _OfPolicy(Operation[Destination]):
    """`seen` is the policy that the page has shown: only this one is confirmed. `asks`, `done`: with the
    name."""

    on = DESTINATIONS
    permission = ModelPermission("agents.change_destination", _("Can change destination"))
    inputs = {"seen": Seen()}
    template = "agents/question.html"
    asks: ClassVar[Text]
    explained: ClassVar[tuple[Text, ...]]
    done: ClassVar[Text]

    def question(self, destination: Destination, by: Any, **named: Any) -> Question:
        side, title = broker_side(destination), self.asks % {"name": destination.name}
        return Question(title, self.explained, {"broker": side}, _refusal(side), {"seen": side.mark})


class ApplyPolicy(_OfPolicy):
    """Writes the policy of the destination to the broker."""

    code, label = "destination.apply", _("Write to the broker")
    asks, done = _("Write the policy of %(name)s to the broker?"), _("Written to the broker: %(name)s")
    explained = (
        _(
            "The broker receives all values of this destination. The values apply to all settings "
            "of the destination."
        ),
        _(
            "For messages already waiting, the policy takes effect at their next failure. A "
            "message that is already delayed keeps its current delay."
        ),
    )

    def run(self, destination: Destination, act: Act, *, seen: str, **inputs: Any) -> Done:
        apply_policy(destination, seen, act.by, act.now, partial(act.record, begun=True))
        return Done(self.done % {"name": destination.name})


class AdoptPolicy(_OfPolicy):
    """Takes the policy on the broker over into the destination."""

    code, label, icon, quiet = "destination.adopt", _("Adopt"), "down", True
    asks = _("Adopt the broker policy for %(name)s?")
    done = _("Broker policy adopted: %(name)s")
    explained = (
        _(
            "The fields of this destination take the broker's values. Values that the MA always "
            "sets are written to the broker instead."
        ),
        _("The broker already uses these values, so waiting messages are not affected."),
    )

    def run(self, destination: Destination, act: Act, *, seen: str, **inputs: Any) -> Done:
        adopt_policy(destination, seen, act.by, act.now, act.record)
        return Done(self.done % {"name": destination.name})


def policy_buttons(user: Any, destination: Destination, side: BrokerSide) -> list[Button]:
    """Where something differs, or might."""
    if not side.made or not (side.drift or side.problem):
        return []
    refused = _refusal(side)
    why = ApplyPolicy.permission.why_not(user, destination) or (refused.sentence if refused else "")
    adopting = why or (
        ""
        if side.adoptable
        else gettext(
            "The differing values are always set by the MA, so they cannot be adopted from the broker."
        )
    )
    apply, adopt = (link(f"destination_{verb}", destination.pk) for verb in ("apply", "adopt"))
    return [
        Button("apply", gettext("Write to the broker…"), apply, "run", "primary", why),
        Button("adopt", gettext("Adopt the broker's values…"), adopt, "down", "", adopting),
    ]


def _refusal(side: BrokerSide) -> Refused | None:
    if not side.made:
        return Refused(
            "not_made",
            gettext(
                "No setting receives messages from this destination, so it does not exist on the broker."
            ),
        )
    if side.problem:
        return Refused(
            "broker", gettext("Cannot read the policy from the broker: %(why)s.") % {"why": side.problem}
        )
    if not side.drift:
        return Refused("same", gettext("The policy on the broker is in sync."))
    return None
