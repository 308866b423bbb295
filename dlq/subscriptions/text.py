"""Describes what is said of waiting messages: parts, actions, what became of them."""

from collections.abc import Mapping

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.ui.page import Bar, StateLabel, Text
from dlq.models.message_action import (
    OPEN_ACTIONS,
    MessageResult,
    WaitingAction,
    WaitingKind,
    WaitingPart,
    WaitingState,
)
from dlq.subscriptions.queries import IN_DELIVERY

PARTS: dict[str, Text] = {
    WaitingPart.WAITING: gettext_lazy("Waiting"),
    WaitingPart.DELAYED: gettext_lazy("Delayed"),
    IN_DELIVERY: gettext_lazy("In delivery"),
    WaitingPart.HELD: gettext_lazy("On hold"),
}
STATES: dict[str, StateLabel] = {
    WaitingState.PLANNED: StateLabel(WaitingState.PLANNED.label, "info", "wait"),
    WaitingState.RUNNING: StateLabel(WaitingState.RUNNING.label, "info", "run"),
    WaitingState.DONE: StateLabel(WaitingState.DONE.label, "ok", "ok"),
    WaitingState.FAILED: StateLabel(WaitingState.FAILED.label, "bad", "bad"),
    WaitingState.STOPPED: StateLabel(WaitingState.STOPPED.label, "off", "off"),
}
RESULTS: dict[str, StateLabel] = {
    MessageResult.PLANNED: StateLabel(MessageResult.PLANNED.label, "info", "wait"),
    MessageResult.ACTED: StateLabel(MessageResult.ACTED.label, "info", "run"),
    MessageResult.LEFT: StateLabel(MessageResult.LEFT.label, "off", "to"),
    MessageResult.STAYED: StateLabel(MessageResult.STAYED.label, "warn", "warn"),
}
DONE: dict[str, Text] = {
    WaitingKind.TRY_NOW: gettext_lazy("redelivered without delay"),
    WaitingKind.TO_DLQ: gettext_lazy("moved to DLQ"),
    WaitingKind.HOLD: gettext_lazy("on hold"),
    WaitingKind.RELEASE: gettext_lazy("released"),
}


def result_label(action: WaitingAction, fate: str) -> StateLabel:
    return StateLabel(DONE[action.kind], "ok", "ok") if fate == MessageResult.DONE else RESULTS[fate]


def action_bars(action: WaitingAction, counts: Mapping[str, int]) -> list[Bar]:
    """Returns what became of them; then what is still to be done, where there is any."""
    known = sum(
        counts.get(fate, 0)
        for fate in (MessageResult.DONE, MessageResult.LEFT, MessageResult.STAYED, MessageResult.ACTED)
    )
    to_do = max(0, action.total - known) if action.state in OPEN_ACTIONS else 0
    not_begun = (
        max(0, action.total - known) if action.state in (WaitingState.STOPPED, WaitingState.FAILED) else 0
    )
    total = max(1, action.total, known)
    shown = [
        Bar(DONE[action.kind], counts.get(MessageResult.DONE, 0), total, "ok", MessageResult.DONE),
        Bar(
            _("already processed, expired or taken by another consumer"),
            counts.get(MessageResult.LEFT, 0),
            total,
            "off",
            MessageResult.LEFT,
        ),
        Bar(
            _("stayed in place (usually still being delivered)"),
            counts.get(MessageResult.STAYED, 0),
            total,
            "warn",
            MessageResult.STAYED,
        ),
        Bar(_("being checked"), counts.get(MessageResult.ACTED, 0), total, "info", MessageResult.ACTED),
        Bar(_("still pending"), to_do, total, "off", MessageResult.PLANNED),
        Bar(_("not yet started"), not_begun, total, "off", ""),
        Bar(_("already gone at the time of the request"), counts.get("missing", 0), total, "off", ""),
    ]
    return [bar for number, bar in enumerate(shown) if bar.count or not number]
