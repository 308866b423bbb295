"""Asking for something to be done with waiting messages: written down before anything is done, a worker does
it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Count
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.provisioning.topology import REMOVING
from broker.management import waiting_messages
from broker.port import Management
from console.audit.log import LONGEST_REASON, record
from console.broker import management
from console.jobs.engine import start
from console.operations.operation import Act
from console.operations.refusals import Refused, WronglyAsked
from contract.names import hold_queue
from contract.typed import storable
from dlq.models.message_action import (
    OPEN_ACTIONS,
    WaitingAction,
    WaitingItem,
    WaitingKind,
    WaitingPart,
)
from dlq.subscriptions.rules import WaitingMessage, waiting_message

LARGEST_SELECTION = 1000
# What can be done with the messages of which part. From the hold queue nothing dies: such a dead letter would
# be of no setting.
POSSIBLE: dict[str, tuple[str, ...]] = {
    WaitingKind.TRY_NOW: (WaitingPart.DELAYED,),
    WaitingKind.TO_DLQ: (WaitingPart.WAITING, WaitingPart.DELAYED),
    WaitingKind.HOLD: (WaitingPart.WAITING, WaitingPart.DELAYED),
    WaitingKind.RELEASE: (WaitingPart.HELD,),
}
# What takes a message away from those who wait for it says why.
NEED_REASON = (WaitingKind.TO_DLQ, WaitingKind.HOLD)


def queue_of(key: str, part: str) -> str:
    return hold_queue(key) if part == WaitingPart.HELD else key


@dataclass(frozen=True, slots=True)
class Selection:
    """`numbers`: the broker's ids of the messages; None: all of the part, as many as there are now, at most
    `most` (as many as somebody confirmed; of more delayed ones than can be named all are tried)."""

    part: str
    numbers: Collection[int] | None
    most: int | None = None


def request_action(setting: LaunchSetting, kind: str, chosen: Selection, act: Act) -> WaitingAction:
    """Raises Refused, BrokerError."""
    _check(setting, kind, chosen, act.reason)
    broker = management()
    if chosen.numbers is None:
        return _request_for_all(setting, kind, chosen, _count(broker, setting.key, chosen.part), act)
    found = _found(listed_messages(broker, setting.key, chosen.part), chosen.numbers)
    if not found:
        raise Refused(
            "gone",
            _("No action was started: these messages are no longer in the list."),
            _(
                "Refresh the page: the messages have been processed, are being delivered, or have "
                "been taken by another consumer."
            ),
        )
    missing = len(set(chosen.numbers)) - len(found)
    counts = {"missing": missing} if missing else {}
    return _write(setting, kind, chosen, found, act, total=len(found), planned_all=True, counts=counts)


def _check(setting: LaunchSetting, kind: str, chosen: Selection, reason: str) -> None:
    if not setting.takes_messages:
        raise WronglyAsked("no_queue", _("No action was started: a standalone agent has no messages."))
    if setting.wanted_hash == REMOVING:
        raise Refused("removing", _("No action was started: the setting is being removed."))
    if chosen.part not in POSSIBLE.get(kind, ()):
        raise WronglyAsked(
            "impossible", _("This action is not possible for these messages. Choose another action.")
        )
    if kind in NEED_REASON and not reason.strip():
        raise WronglyAsked(
            "no_reason",
            _(
                "No action was started: the reason is missing. Enter a reason for others who search "
                "for these messages."
            ),
        )
    if chosen.numbers is not None and not 0 < len(set(chosen.numbers)) <= LARGEST_SELECTION:
        raise WronglyAsked("selection", _("Select 1 to %(n)s messages.") % {"n": LARGEST_SELECTION})


def _count(broker: Management, key: str, part: str) -> int:
    queue = f"queue.{queue_of(key, part)}"
    names = ("MessageCount", "ScheduledCount", "DeliveringCount")
    total, delayed, delivering = map(int, broker.attributes(queue, *names))
    if part == WaitingPart.DELAYED:
        return delayed
    return total if part == WaitingPart.HELD else max(0, total - delayed - delivering)


def listed_messages(broker: Management, key: str, part: str) -> list[WaitingMessage] | None:
    """Returns what the broker can tell of the part without an unbounded answer; None: nothing, there are too
    many."""
    queue = queue_of(key, part)
    rows = (
        waiting_messages.delayed(broker, queue)
        if part == WaitingPart.DELAYED
        else waiting_messages.first_waiting(broker, queue)
    )
    return None if rows is None else [waiting_message(row) for row in rows]


def _found(there: Sequence[WaitingMessage] | None, numbers: Collection[int]) -> list[WaitingMessage]:
    if there is None:
        raise _too_many()
    wanted = set(numbers)
    return [message for message in there if message.number in wanted]


def _too_many() -> Refused:
    return Refused(
        "too_many_delayed",
        _(
            "No action was started: more than %(n)s messages are delayed, and the broker cannot "
            "list them individually."
        )
        % {"n": waiting_messages.LISTED},
        _(
            "Disable the setting and redeliver all these messages now. You can then select "
            "individual messages."
        ),
    )


def _request_for_all(
    setting: LaunchSetting, kind: str, chosen: Selection, total: int, act: Act
) -> WaitingAction:
    if not total:
        raise Refused("nothing", _("There are no such messages now."))
    many = chosen.part == WaitingPart.DELAYED and total > waiting_messages.LISTED
    if many and kind != WaitingKind.TRY_NOW:
        raise _too_many()
    if chosen.most is not None and not many:
        total = min(total, chosen.most)
    return _write(setting, kind, chosen, (), act, total=total, every=True, whole=many)


def _write(
    setting: LaunchSetting,
    kind: str,
    chosen: Selection,
    messages: Sequence[WaitingMessage],
    act: Act,
    **fields: Any,
) -> WaitingAction:
    person = act.by if isinstance(act.by, User) else None
    try:
        with transaction.atomic():
            action = WaitingAction.objects.create(
                setting=setting,
                setting_key=setting.key,
                kind=kind,
                part=chosen.part,
                reason=storable(act.reason.strip())[:LONGEST_REASON],
                by=person,
                by_name=person.get_username()[:150] if person else "",
                created_at=act.now,
                **fields,
            )
            write_action_items(action, messages, act.now)
            act.record(about=entry_of(action), part=action.part)
    except IntegrityError as error:
        running = WaitingAction.objects.filter(setting_key=setting.key, state__in=OPEN_ACTIONS).first()
        raise Refused(
            "already_running",
            _("No action was started: another action on messages of this setting is running."),
            _("Wait until the job finishes, or stop it."),
            action=str(running.pk) if running else "",
        ) from error
    transaction.on_commit(lambda: start(action), robust=True)
    return action


def write_action_items(action: WaitingAction, messages: Sequence[WaitingMessage], now: datetime) -> None:
    """A second writing of the same message changes nothing."""
    items = [
        WaitingItem(
            action=action, number=each.number, setting_key=action.setting_key, message_key=each.key, at=now
        )
        for each in messages
    ]
    WaitingItem.objects.bulk_create(items, ignore_conflicts=True)


def entry_of(action: WaitingAction) -> dict[str, Any]:
    """Returns the columns of its entries in the audit."""
    return {
        "target": f"message_action:{action.pk}",
        "operation": action.pk,
        "scope": "all" if action.every else "one" if action.total == 1 else "selection",
        "counts": {"messages": action.total, **action.counts},
    }


def record_end(action: WaitingAction, now: datetime) -> None:
    """Records that it is over."""
    record(
        f"message_action.{action.state}",
        by=action.by,
        now=now,
        setting_key=action.setting_key,
        reason=action.reason,
        detail={"part": action.part, "kind": action.kind},
        **entry_of(action),
    )


def stop_action(action: WaitingAction, act: Act) -> None:
    """It ends after what is at hand; what is done stays done. Raises Refused."""
    stopped = WaitingAction.objects.filter(pk=action.pk, state__in=OPEN_ACTIONS, stopping=False)
    with transaction.atomic():
        if not stopped.update(stopping=True):
            raise Refused(
                "over",
                _("The action has finished or is already stopping. Refresh the page to see its state."),
            )
        act.record(about=entry_of(action))


def action_counts(action: WaitingAction) -> Mapping[str, int]:
    """Returns them by result; counted while it is under way, then kept with it. `missing`: not there any more
    when it was asked."""
    kept = {name: int(count) for name, count in action.counts.items() if isinstance(count, int)}
    if action.state not in OPEN_ACTIONS or action.whole:
        return kept
    rows = action.items.order_by().values_list("fate").annotate(Count("pk"))
    return kept | {fate: int(count) for fate, count in rows}
