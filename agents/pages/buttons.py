"""Buttons that lead to a question, and why some of them cannot be pressed."""

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import (
    Activation,
    GroupActivation,
    GroupActivationState,
    LaunchSetting,
    ScheduledGroup,
    Timing,
)
from agents.models.activation import OPEN_ACTIVATIONS
from agents.services.groups import group_of, group_refusal
from agents.services.rights import why_not, why_not_group
from agents.services.starting import start_refusal, stop_refusal
from agents.services.switching import Refused, refusal
from console.ui.labels import Button
from console.ui.page import link


def told(refused: Refused | None) -> str:
    return f"{refused.reason} {refused.what_to_do}" if refused else ""


def open_activation(setting: LaunchSetting) -> Activation | None:
    return setting.activations.select_related("setting").filter(state__in=OPEN_ACTIVATIONS).first()


def enable_refusal(setting: LaunchSetting) -> str:
    """Why it cannot be switched on now by anybody; empty where it can."""
    group = group_of(setting)
    if group is not None:
        text = _("It belongs to the group “%(name)s”: switch the group on.")
        return text % {"name": group.name}
    return told(refusal(setting, timezone.now()))


def setting_buttons(request: HttpRequest, setting: LaunchSetting) -> list[Button]:
    """Run now or stop, where there is something to run or to stop; switch on or off."""
    key, user = setting.key, request.user
    if not setting.enabled:
        why = why_not(user, "enable", setting) or enable_refusal(setting)
        return [Button("enable", _("Switch on…"), link("setting_enable", key), "play", "primary", why)]
    why = why_not(user, "disable", setting)
    off = Button("disable", _("Switch off…"), link("setting_disable", key), "off", "danger", why)
    again: list[Button] = []
    if setting.ordered:
        again = [
            Button(
                "retry",
                _("Try again now…"),
                link("setting_retry", key),
                "run",
                "",
                why_not(user, "run", setting),
            )
        ]
    if setting.timing == Timing.ASAP and setting.takes_messages:
        return [*again, off]
    activation = open_activation(setting)
    if activation is not None:
        why = why_not(user, "stop", setting) or told(stop_refusal(activation))
        return [*again, Button("stop", _("Stop…"), link("setting_stop", key), "pause", "", why), off]
    why = why_not(user, "run", setting) or told(start_refusal(setting))
    return [Button("run", _("Run now…"), link("setting_run", key), "run", "primary", why), off]


def group_buttons(
    request: HttpRequest, group: ScheduledGroup, members: list[LaunchSetting], last: GroupActivation | None
) -> list[Button]:
    """Run now and stop, switch on or off: what can be meant now."""

    def missing(action: str) -> str:
        return why_not_group(request.user, action, group, members)

    running = last is not None and last.state == GroupActivationState.RUNNING
    if not group.enabled:
        refusal = missing("enable") or told(group_refusal(group, timezone.now()))
        return [
            Button("enable", _("Switch on…"), link("group_enable", group.name), "play", "primary", refusal)
        ]
    off = Button(
        "disable", _("Switch off…"), link("group_disable", group.name), "off", "danger", missing("disable")
    )
    if running:
        return [off]
    return [
        Button("run", _("Run now…"), link("group_run", group.name), "run", "primary", missing("run")),
        off,
    ]
