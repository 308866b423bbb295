"""Describes what people do with an activation: stop it."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.activations.start import stop_activation
from agents.models import Activation
from agents.pools.rights import why_not
from agents.state_history import why_of
from console.operations.inputs import REASON
from console.operations.operation import Act, Done, Operation
from console.operations.refusals import Refused
from console.operations.resource import Resource

ACTIVATIONS = Resource(
    name="activation",
    rows=lambda: Activation.objects.select_related("setting__pool"),
    key="pk",
    route="activations/<uuid:pk>/",
    view="agents.view_activation",
    list_page="activations",
    title=_("Activations"),
    setting_key=lambda activation: activation.setting.key,
)


@dataclass(frozen=True, slots=True)
class _MayStop:
    def why_not(self, user: Any, activation: Activation) -> str:
        return why_not(user, "stop", activation.setting)


class StopActivation(Operation[Activation]):
    """The setting stays enabled. 409 where it ended, or only disabling stops it."""

    code, label, icon, tone = "activation.stop", _("Stop"), "pause", "danger"
    on, permission, inputs = ACTIVATIONS, _MayStop(), {"reason": REASON}

    def run(self, activation: Activation, act: Act, **inputs: Any) -> Done:
        if not stop_activation(activation, act.by, why_of(act.by, act.reason), act.now, record=act.record):
            raise Refused(
                "over", gettext("It has ended, or is ending already."), gettext("Nothing is to be done.")
            )
        return Done(gettext("It is being stopped: %(key)s") % {"key": activation.setting.key})
