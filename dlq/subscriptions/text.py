"""What is said of waiting messages: parts, actions, what became of them."""

from collections.abc import Mapping

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.ui.labels import Bar, Shown
from console.ui.page import Text
from dlq.models.waiting import OPEN_ACTIONS, Fate, WaitingAction, WaitingKind, WaitingPart, WaitingState
from dlq.subscriptions.queries import IN_DELIVERY

PARTS: dict[str, Text] = {
    WaitingPart.WAITING: gettext_lazy("Waiting"),
    WaitingPart.DELAYED: gettext_lazy("Delayed"),
    IN_DELIVERY: gettext_lazy("In delivery"),
    WaitingPart.HELD: gettext_lazy("Held back"),
}
STATES: dict[str, Shown] = {
    WaitingState.PLANNED: Shown(WaitingState.PLANNED.label, "info", "wait"),
    WaitingState.RUNNING: Shown(WaitingState.RUNNING.label, "info", "run"),
    WaitingState.DONE: Shown(WaitingState.DONE.label, "ok", "ok"),
    WaitingState.FAILED: Shown(WaitingState.FAILED.label, "bad", "bad"),
    WaitingState.STOPPED: Shown(WaitingState.STOPPED.label, "off", "off"),
}
FATES: dict[str, Shown] = {
    Fate.PLANNED: Shown(Fate.PLANNED.label, "info", "wait"),
    Fate.ACTED: Shown(Fate.ACTED.label, "info", "run"),
    Fate.LEFT: Shown(Fate.LEFT.label, "off", "to"),
    Fate.STAYED: Shown(Fate.STAYED.label, "warn", "warn"),
}
DONE: dict[str, Text] = {
    WaitingKind.TRY_NOW: gettext_lazy("tried without the delay"),
    WaitingKind.TO_DLQ: gettext_lazy("in the dead letters"),
    WaitingKind.HOLD: gettext_lazy("held back"),
    WaitingKind.RELEASE: gettext_lazy("released"),
}


def fate_shown(action: WaitingAction, fate: str) -> Shown:
    return Shown(DONE[action.kind], "ok", "ok") if fate == Fate.DONE else FATES[fate]


def bars(action: WaitingAction, counts: Mapping[str, int]) -> list[Bar]:
    """What became of them; then what is still to be done, where there is any."""
    known = sum(counts.get(fate, 0) for fate in (Fate.DONE, Fate.LEFT, Fate.STAYED, Fate.ACTED))
    to_do = max(0, action.total - known) if action.state in OPEN_ACTIONS else 0
    not_begun = (
        max(0, action.total - known) if action.state in (WaitingState.STOPPED, WaitingState.FAILED) else 0
    )
    total = max(1, action.total, known)
    shown = [
        Bar(DONE[action.kind], counts.get(Fate.DONE, 0), total, "ok", Fate.DONE),
        Bar(
            _("handled, expired or taken by somebody before"),
            counts.get(Fate.LEFT, 0),
            total,
            "off",
            Fate.LEFT,
        ),
        Bar(
            _("stayed where it was, mostly in delivery"),
            counts.get(Fate.STAYED, 0),
            total,
            "warn",
            Fate.STAYED,
        ),
        Bar(_("being looked up"), counts.get(Fate.ACTED, 0), total, "info", Fate.ACTED),
        Bar(_("still to be done"), to_do, total, "off", Fate.PLANNED),
        Bar(_("not begun"), not_begun, total, "off", ""),
        Bar(_("not there any more when it was asked"), counts.get("missing", 0), total, "off", ""),
    ]
    return [bar for number, bar in enumerate(shown) if bar.count or not number]
