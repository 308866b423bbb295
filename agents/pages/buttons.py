"""Buttons that lead to a question, and why some of them cannot be pressed."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import GroupActivation, GroupActivationState, LaunchSetting, ScheduledGroup
from agents.pages.consoles import Text, link
from agents.services.groups import group_refusal
from agents.services.rights import may_group, why_not_group
from agents.services.switching import Refused


@dataclass(frozen=True, slots=True)
class Button:
    """`name` is its id on the page; `refusal` says why it is disabled, empty where it is not."""

    name: str
    text: Text
    url: str
    icon: str
    tone: str = ""
    refusal: str = ""


def told(refused: Refused | None) -> str:
    return f"{refused.reason} {refused.what_to_do}" if refused else ""


def group_buttons(
    request: HttpRequest, group: ScheduledGroup, members: list[LaunchSetting], last: GroupActivation | None
) -> list[Button]:
    """Run now and stop, switch on or off: what can be meant now."""

    def missing(action: str) -> str:
        return "" if may_group(request.user, action, group, members) else why_not_group(request.user, action, group)

    running = last is not None and last.state == GroupActivationState.RUNNING
    if not group.enabled:
        refusal = missing("enable") or told(group_refusal(group, timezone.now()))
        return [Button("enable", _("Switch on…"), link("group_enable", group.name), "play", "primary", refusal)]
    off = Button("disable", _("Switch off…"), link("group_disable", group.name), "off", "danger", missing("disable"))
    if running:
        return [off]
    return [Button("run", _("Run now…"), link("group_run", group.name), "run", "primary", missing("run")), off]
