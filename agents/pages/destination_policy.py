"""The broker's own settings of a destination beside what is wanted, and what may be done where they
differ."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django import forms
from django.contrib.admin.utils import label_for_field
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.models import Destination
from agents.pages.asking import Question, StorableField, ask
from agents.services.policies import (
    PolicyLine,
    adopt_policy,
    apply_policy,
    is_made,
    mark_of,
    policy_lines,
    read_policy,
)
from broker.errors import BrokerError
from console.broker import bounded
from console.ui import amounts
from console.ui.labels import Button
from console.ui.page import Text, link, needs

VIEW = "agents.view_destination"
CHANGE = "agents.change_destination"
ASKED = ["GET", "HEAD", "POST"]
MILLISECONDS = ("redeliveryDelay", "maxRedeliveryDelay", "expiryDelay")


@dataclass(frozen=True, slots=True)
class ShownLine:
    label: Text
    name: str
    wanted: str
    found: str
    differs: bool


@dataclass(frozen=True, slots=True)
class BrokerSide:
    """`problem`: why the broker does not tell what it has; `lines` then show what is wanted alone. `made`
    False: the MA keeps nothing there yet. `mark` is of `agents.services.policies`."""

    lines: list[ShownLine] = field(default_factory=list)
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
        found = bounded(lambda: read_policy(destination))
    except BrokerError as error:
        shown = [_shown(line, known=False) for line in policy_lines(destination, {})]
        return BrokerSide(shown, problem=str(error))
    lines = policy_lines(destination, found)
    return BrokerSide(
        lines=[_shown(line) for line in lines],
        drift=sum(line.differs for line in lines),
        mark=mark_of(lines),
        adoptable=any(line.differs and line.field for line in lines),
    )


def _shown(line: PolicyLine, *, known: bool = True) -> ShownLine:
    label = str(label_for_field(line.field, Destination)) if line.field else _ours().get(line.name, "")
    found = _value(line.name, line.found) if known else "—"
    return ShownLine(label, line.name, _value(line.name, line.wanted), found, known and line.differs)


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


def policy_buttons(request: HttpRequest, destination: Destination, side: BrokerSide) -> list[Button]:
    """Where something differs, or might."""
    if not side.made or not (side.drift or side.problem):
        return []
    why = _why_not(request, side)
    adopting = why or ("" if side.adoptable else _("What differs is always the MA's."))
    return [
        Button(
            "apply",
            _("Write what is wanted to the broker…"),
            link("destination_apply", destination.pk),
            "run",
            "primary",
            why,
        ),
        Button(
            "adopt",
            _("Adopt what the broker has…"),
            link("destination_adopt", destination.pk),
            "down",
            "",
            adopting,
        ),
    ]


def _why_not(request: HttpRequest, side: BrokerSide) -> str:
    if not request.user.has_perm(CHANGE):
        text = _("You may not do that. Ask for the permission “%(permission)s”.")
        return text % {"permission": _("Can change destination")}
    return _("The broker cannot be asked: %(why)s.") % {"why": side.problem} if side.problem else ""


class SeenForm(forms.Form):
    seen = StorableField(widget=forms.HiddenInput, required=False, max_length=64)


@require_http_methods(ASKED)
@needs(VIEW, CHANGE)
def apply_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    destination = get_object_or_404(Destination, pk=pk)
    texts: list[Text] = [
        _("The broker gets every value of the column “wanted”, for all settings of this destination."),
        _waiting(),
    ]
    question = partial(
        Question,
        title=_("Write the policy of %(name)s to the broker?") % {"name": destination.name},
        texts=texts,
        button=_("Write it to the broker"),
        icon="run",
    )
    done = _("Written to the broker: %(name)s") % {"name": destination.name}
    return _ask(request, destination, question, apply_policy, done)


@require_http_methods(ASKED)
@needs(VIEW, CHANGE)
def adopt_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    destination = get_object_or_404(Destination, pk=pk)
    texts: list[Text] = [
        _(
            "The fields of this destination get what the broker has. What is always the MA's is not adopted, "
            "it is "
            "written to the broker."
        ),
        _("The broker goes by these values already: what waits is not treated otherwise than before."),
    ]
    question = partial(
        Question,
        title=_("Adopt the policy that the broker has for %(name)s?") % {"name": destination.name},
        texts=texts,
        button=_("Adopt it"),
        icon="down",
    )
    done = _("Adopted from the broker: %(name)s") % {"name": destination.name}
    return _ask(request, destination, question, adopt_policy, done)


def _waiting() -> str:
    return _(
        "It holds for messages that wait already, from their next failure on. One that is delayed at this "
        "moment keeps "
        "its delay."
    )


def _ask(
    request: HttpRequest,
    destination: Destination,
    question: Callable[..., Question],
    do: Callable[..., None],
    done: str,
) -> HttpResponseBase:
    side = BrokerSide() if request.method == "POST" else broker_side(destination)
    back = link("agents_destination_change", destination.pk)
    asked = question(
        section="destinations",
        back=back,
        crumbs=[(_("Destinations"), link("agents_destination_changelist")), (destination.name, back)],
        refusal=_refusal(request, side),
    )

    def act(form: Any) -> Text:
        do(destination, form.cleaned_data["seen"], request.user, timezone.now())
        return done

    return ask(request, asked, act, partial(SeenForm, initial={"seen": side.mark}), broker=side)


def _refusal(request: HttpRequest, side: BrokerSide) -> str:
    if not side.made:
        return _("No setting receives from it: the broker has not made it.")
    if side.lines and not side.problem and not side.drift:
        return _("The broker has what is wanted.")
    return _why_not(request, side)
