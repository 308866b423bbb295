"""An action on waiting messages, step by step. Each step may run twice, and at the same time elsewhere.

Messages are written down before anything is done to them, by the broker's id, which is of one message in one
queue: so a step after a crash does nothing to what was done before it. What became of each is looked up at
the end: where it was to go, and where it was.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from agents.provisioning.provision import HELD_FOR as PROVISIONING
from broker.management import waiting_messages
from broker.management.desired_topology import hold_topology
from broker.management.queues import find
from broker.management.topology import apply
from broker.port import Management, ManagementFailed
from console.jobs import crash
from console.jobs.engine import Wait, Worker
from console.processes import lock
from console.reasons import said
from contract.names import HOLD, dead_letter_queue, hold_queue
from dlq.dead_letters.rules.parser import origin_of
from dlq.index.broker import LetterQueues
from dlq.models import DeadLetter
from dlq.models.message_action import (
    OPEN_ACTIONS,
    MessageResult,
    WaitingAction,
    WaitingItem,
    WaitingKind,
    WaitingState,
)
from dlq.subscriptions.requests import listed_messages, queue_of, record_end, write_action_items

log = structlog.get_logger(__name__)

# -- results of messages, looked up where they were to go and where they were --------------------------------


Numbers = Collection[int]
AT_ONCE = 500
# More than any queue holds: a walk ends where the queue does.
EVERYTHING = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What was found by the broker's id. Nothing is known of the others; `later`: more may be known in a
    moment."""

    done: frozenset[int]
    stayed: frozenset[int] = frozenset()
    later: bool = False


def look_up(action: WaitingAction, numbers: Numbers, queues: LetterQueues) -> LookupResult:
    broker, key = queues.management, action.setting_key
    if action.kind == WaitingKind.TRY_NOW:
        return _no_more_delayed(broker, key, numbers)
    if action.kind == WaitingKind.RELEASE:
        return _no_more_held(broker, key, numbers)
    if action.kind == WaitingKind.HOLD:
        done, later = _held(queues, key).intersection(numbers), False
    else:
        done, later = _dead(key, numbers, queues.node_id()), True
    stayed = frozenset(numbers) - done
    return LookupResult(done, stayed & _in_subscription(broker, key) if stayed else stayed, later)


def _no_more_delayed(broker: Management, key: str, numbers: Numbers) -> LookupResult:
    """Finds which are no longer delayed; unknown where there are more than the broker lists."""
    rows = waiting_messages.delayed(broker, key)
    if rows is None:
        return LookupResult(frozenset())
    still = _ids(rows).intersection(numbers)
    return LookupResult(frozenset(numbers) - still, still)


def _no_more_held(broker: Management, key: str, numbers: Numbers) -> LookupResult:
    """They were among the first of the hold queue, and nobody else takes anything from it: what has not left
    it is among the first still."""
    still = _ids(waiting_messages.first_waiting(broker, hold_queue(key))).intersection(numbers)
    return LookupResult(frozenset(numbers) - still, still)


def _held(queues: LetterQueues, key: str) -> frozenset[int]:
    """The ids that the held messages had in the subscription: a walk, linear in what is held."""
    walk = queues.browser.browse(HOLD, hold_queue(key), limit=EVERYTHING)
    found = (origin_of(browsed.message).message_id for browsed in walk if browsed.message)
    return frozenset(number for number in found if number is not None)


def _dead(key: str, numbers: Numbers, node_id: str) -> frozenset[int]:
    wanted = sorted(numbers)
    found: set[int] = set()
    for start in range(0, len(wanted), AT_ONCE):
        letters = DeadLetter.objects.filter(
            node_id=node_id, queue=dead_letter_queue(key), orig_message_id__in=wanted[start : start + AT_ONCE]
        )
        found.update(letters.values_list("orig_message_id", flat=True))
    return frozenset(found)


def _in_subscription(broker: Management, key: str) -> frozenset[int]:
    """Reads as far as bounded answers go: those in delivery above all, for they cannot be acted upon."""
    groups = waiting_messages.in_delivery(broker, key) or ()
    held = (row for group in groups for row in group.rows)
    return _ids(
        [*waiting_messages.first_waiting(broker, key), *(waiting_messages.delayed(broker, key) or ()), *held]
    )


def _ids(rows: Iterable[waiting_messages.Row]) -> frozenset[int]:
    return frozenset(int(row["messageID"]) for row in rows)


SLICE = 200
# Each look-up of held messages is a walk of the hold queue: rather few of them.
LOOKED_UP = 50_000
# A dead letter comes through the feed into the index within a second; longer than this nobody waits for one.
PATIENCE = timedelta(seconds=20)
SHORT_PAUSE = timedelta(seconds=1)


class MessageActionWorker(Worker[WaitingAction]):
    model, workable = WaitingAction, Q(state__in=OPEN_ACTIONS)

    def __init__(self, queues: Callable[[], LetterQueues]) -> None:
        self._queues = queues

    def begun(self, job: WaitingAction, now: datetime) -> dict[str, Any]:
        return {"state": WaitingState.RUNNING}

    def step(self, job: WaitingAction) -> bool | Wait:
        queues = self._queues()
        try:
            return self._step(job, queues)
        except ManagementFailed as error:
            if find(queues.management, "listQueues", queue_of(job.setting_key, job.part)) is not None:
                raise
            return _without_queue(job, str(error))

    def _step(self, job: WaitingAction, queues: LetterQueues) -> bool | Wait:
        if job.whole:
            return _act_on_all(job, queues)
        planned = list(job.items.filter(fate=MessageResult.PLANNED).order_by("pk")[:SLICE])
        if planned:
            return _act(job, planned, queues)
        if not job.planned_all:
            return _plan(job, queues)
        if job.items.filter(fate=MessageResult.ACTED).exists():
            return _look_up(job, queues)
        return _finish(job, timezone.now())


def _not_yet(why: str) -> Wait:
    """Something else must happen first."""
    return Wait(timezone.now() + SHORT_PAUSE, why)


# -- plan ----------------------------------------------------------------------------------------------------


def _plan(action: WaitingAction, queues: LetterQueues) -> bool:
    """The next messages of the part. As many in all as there were when it was asked: what comes later
    stays."""
    left = max(0, action.total - action.items.count())
    there = (
        []
        if action.stopping or not left
        else listed_messages(queues.management, action.setting_key, action.part) or []
    )
    numbers = [message.number for message in there]
    known = set(action.items.filter(number__in=numbers).values_list("number", flat=True))
    new = [message for message in there if message.number not in known][: min(left, SLICE)]
    write_action_items(action, new, timezone.now())
    crash.point("waiting_planned")
    if not new:
        WaitingAction.objects.filter(pk=action.pk).update(planned_all=True)
    return True


# -- act -----------------------------------------------------------------------------------------------------


def _act(action: WaitingAction, items: list[WaitingItem], queues: LetterQueues) -> bool | Wait:
    """Killed before the mark, all of it is done again, to no effect. Under the lock of provisioning: nobody
    takes a queue away while messages move between the subscription and its hold queue."""
    crash.point("waiting_before_act")
    try:
        if action.kind in (WaitingKind.HOLD, WaitingKind.RELEASE):
            with lock("provision", PROVISIONING) as free:
                if not free:
                    return _not_yet("provision")
                _ask_broker(action, items, queues)
        else:
            _ask_broker(action, items, queues)
    except ManagementFailed as error:
        _give_up(action, str(error))
        return True
    crash.point("waiting_after_act")
    now = timezone.now()
    acted = WaitingItem.objects.filter(pk__in=[item.pk for item in items], fate=MessageResult.PLANNED)
    acted.update(fate=MessageResult.ACTED, at=now)
    WaitingAction.objects.filter(pk=action.pk).update(acted_at=now)
    return True


def _ask_broker(action: WaitingAction, items: list[WaitingItem], queues: LetterQueues) -> None:
    """Asks the broker; what it answers to each is not believed."""
    broker, key = queues.management, action.setting_key
    if action.kind == WaitingKind.HOLD:
        apply(broker, hold_topology(key, queues.dla))
    for item in items:
        crash.point("waiting_before_one")
        if action.kind == WaitingKind.TRY_NOW:
            waiting_messages.deliver_now(broker, key, item.number)
        elif action.kind == WaitingKind.TO_DLQ:
            waiting_messages.send_to_dead_letters(broker, key, item.number)
        elif action.kind == WaitingKind.HOLD:
            waiting_messages.move(broker, key, item.number, hold_queue(key))
        else:
            waiting_messages.move(broker, hold_queue(key), item.number, key)
        crash.point("waiting_after_one")


def _act_on_all(action: WaitingAction, queues: LetterQueues) -> bool:
    """Ends every delay with one operation. Done again after a crash it ends those that began meanwhile as
    well."""
    if not action.stopping:
        waiting_messages.deliver_all_now(queues.management, action.setting_key)
    crash.point("waiting_after_all")
    left = int(queues.management.attribute(f"queue.{action.setting_key}", "ScheduledCount"))
    return _end(
        action,
        {
            MessageResult.DONE.value: max(0, action.total - left),
            MessageResult.STAYED.value: min(left, action.total),
        },
    )


def _give_up(action: WaitingAction, problem: str) -> None:
    """The broker refuses it, mostly because a queue is not there. What was done before is looked up."""
    log.warning("action on waiting messages refused by the broker", action=str(action.pk), reason=problem)
    action.items.filter(fate=MessageResult.PLANNED).update(fate=MessageResult.ACTED, at=timezone.now())
    WaitingAction.objects.filter(pk=action.pk).update(
        planned_all=True,
        counts={**action.counts, "refused": 1},
        acted_at=timezone.now(),
        problem=said(problem),
    )


def _without_queue(action: WaitingAction, problem: str) -> bool:
    """Where its messages were is no queue any more: nothing can be done or looked up, and nobody is to meet
    the messages of another queue of that name."""
    _give_up(action, problem)
    action.refresh_from_db(fields=["counts", "problem"])
    action.items.filter(fate=MessageResult.ACTED).update(fate=MessageResult.LEFT, at=timezone.now())
    return _finish(action, timezone.now())


# -- look up -------------------------------------------------------------------------------------------------


def _look_up(action: WaitingAction, queues: LetterQueues) -> bool | Wait:
    """Marks what is known of each message. Who waits for the index waits a while, then takes what there
    is."""
    items = action.items.filter(fate=MessageResult.ACTED).order_by("pk")
    acted = dict(items.values_list("number", "pk")[:LOOKED_UP])
    found = look_up(action, acted.keys(), queues)
    now = timezone.now()
    done = [acted[number] for number in found.done]
    stayed = [acted[number] for number in found.stayed]
    _mark(done, MessageResult.DONE, now)
    crash.point("waiting_looked_up")
    _mark(stayed, MessageResult.STAYED, now)
    unknown = [pk for number, pk in acted.items() if number not in found.done and number not in found.stayed]
    if unknown and found.later and now - (action.acted_at or now) < PATIENCE:
        return _not_yet("index")
    _mark(unknown, MessageResult.LEFT, now)
    return True


def _mark(items: list[int], fate: MessageResult, now: datetime) -> None:
    for start in range(0, len(items), 500):
        chosen = WaitingItem.objects.filter(pk__in=items[start : start + 500], fate=MessageResult.ACTED)
        chosen.update(fate=fate, at=now)


def _finish(action: WaitingAction, now: datetime) -> bool:
    counts = dict(action.items.order_by().values_list("fate").annotate(Count("pk")))
    return _end(action, counts)


def _end(action: WaitingAction, counts: dict[str, int]) -> bool:
    """Conditional: of two workers one ends it and writes the audit."""
    now, told = timezone.now(), {**action.counts, **counts}
    refused = bool(told.get("refused"))
    state = WaitingState.FAILED if refused else WaitingState.STOPPED if action.stopping else WaitingState.DONE
    crash.point("waiting_before_end")
    with transaction.atomic():
        if action.end(state=state, finished_at=now, counts=told):
            action.state, action.counts = state, told
            record_end(action, now)
    return False
