"""Describes what people do where the broker has another policy than is wanted: write it there, or adopt what
it has."""

from functools import partial
from typing import Any, ClassVar

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.destinations.broker_side import BrokerSide, broker_side
from agents.destinations.policies import adopt_policy, apply_policy
from agents.models import Destination
from console.operations.inputs import Seen
from console.operations.operation import Act, Done, ModelPermission, Operation, Question
from console.operations.refusals import Refused
from console.operations.resource import Resource
from console.ui.labels import Button
from console.ui.page import Text, link

DESTINATIONS = Resource(
    name="destination",
    rows=Destination.objects.all,
    key="pk",
    route="destinations/<int:pk>/",
    view="agents.view_destination",
    list_page="agents_destination_changelist",
    title=_("Destinations"),
    section="destinations",
    page="agents_destination_change",
    label=lambda destination: destination.name,
)


class _OfPolicy(Operation[Destination]):
    """Who confirms it confirms what the page has shown (`seen`). `asks`, `done`: with the name."""

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
    """The broker gets every value that is wanted."""

    code, label = "destination.apply", _("Write it to the broker")
    asks, done = _("Write the policy of %(name)s to the broker?"), _("Written to the broker: %(name)s")
    explained = (
        _("The broker gets every value of the column “wanted”, for all settings of this destination."),
        _(
            "It holds for messages that wait already, from their next failure on. One that is delayed at "
            "this moment keeps its delay."
        ),
    )

    def run(self, destination: Destination, act: Act, *, seen: str, **inputs: Any) -> Done:
        apply_policy(destination, seen, act.by, act.now, partial(act.record, begun=True))
        return Done(self.done % {"name": destination.name})


class AdoptPolicy(_OfPolicy):
    """The fields of this destination get what the broker has."""

    code, label, icon, quiet = "destination.adopt", _("Adopt it"), "down", True
    asks = _("Adopt the policy that the broker has for %(name)s?")
    done = _("Adopted from the broker: %(name)s")
    explained = (
        _(
            "The fields of this destination get what the broker has. What is always the MA's is not adopted, "
            "it is written to the broker."
        ),
        _("The broker goes by these values already: what waits is not treated otherwise than before."),
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
    adopting = why or ("" if side.adoptable else gettext("What differs is always the MA's."))
    apply, adopt = (link(f"destination_{verb}", destination.pk) for verb in ("apply", "adopt"))
    return [
        Button("apply", gettext("Write what is wanted to the broker…"), apply, "run", "primary", why),
        Button("adopt", gettext("Adopt what the broker has…"), adopt, "down", "", adopting),
    ]


def _refusal(side: BrokerSide) -> Refused | None:
    if not side.made:
        return Refused("not_made", gettext("No setting receives from it: the broker has not made it."))
    if side.problem:
        return Refused("broker", gettext("The broker cannot be asked: %(why)s.") % {"why": side.problem})
    if not side.drift:
        return Refused("same", gettext("The broker has what is wanted."))
    return None
