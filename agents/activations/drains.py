"""Looks at the subscriptions of activations that drain, and ends those that are done."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog

from agents.activations.end import end_activations, set_ending
from agents.activations.rules.outcome import (
    DrainProgress,
    Patience,
    QueueReading,
    advance_drain,
    time_is_up,
    verdict,
)
from agents.isolation import isolated
from agents.models import Activation, ActivationState, Ending, LaunchSetting, SettingKind, Timing
from broker.management.queues import queue_figures
from broker.port import BrokerError, BrokerUnavailable
from console.broker import management
from console.processes import lock

log = structlog.get_logger(__name__)

# Two processes that look at once do no harm; with a broker that hangs they would pile up.
HELD_FOR = timedelta(seconds=30)


def watch_drains(now: datetime) -> int:
    """Returns how many are done. One call of the broker for each that drains; while it is away only time
    decides.

    Each step is stored by conditional UPDATEs: killed anywhere, the next look goes on from what was seen.
    """
    open_ones = list(_draining())
    if not open_ones:
        return 0
    done = [activation for activation in open_ones if _is_up(activation, now)]
    for activation in done:
        with isolated("drains", activation=activation.pk):
            set_ending(activation, Ending.LIMIT, now)
    rest = [activation for activation in open_ones if activation not in done]
    with lock("drains", HELD_FOR) as free:
        ended = _read_queues(rest, now) if free else []
    if done or ended:
        end_activations(now, [activation.pk for activation in done + ended])
    return len(done) + len(ended)


def patience_of(setting: LaunchSetting) -> Patience:
    return Patience(
        idle=timedelta(seconds=setting.drain_idle_seconds),
        wait=timedelta(seconds=setting.drain_wait_seconds),
        longest=timedelta(minutes=setting.drain_limit_minutes),
        later=bool(setting.drain_limit_minutes or setting.drain_limit_messages),
    )


def _draining() -> Iterable[Activation]:
    """Those that have a run: while none has begun nothing is drained."""
    running = Activation.objects.filter(ended_at=None, state=ActivationState.RUNNING, ending="")
    drains = running.filter(setting__timing=Timing.DELAYED, setting__kind=SettingKind.MESSAGE)
    return drains.select_related("setting__destination").order_by("started_at")


def _is_up(activation: Activation, now: datetime) -> bool:
    return time_is_up(activation.started_at, patience_of(activation.setting).longest, now)


def _read_queues(activations: Iterable[Activation], now: datetime) -> list[Activation]:
    """Those that are done."""
    ended = []
    for activation in activations:
        with isolated("drains", activation=activation.pk):
            try:
                reading = _reading_of(activation)
            except BrokerUnavailable as error:
                log.info("broker unavailable, drains not evaluated", reason=str(error))
                break
            except BrokerError as error:
                log.warning("subscription not read", setting=activation.setting.key, reason=str(error))
                continue
            if _decide(activation, reading, now):
                ended.append(activation)
    return ended


def _reading_of(activation: Activation) -> QueueReading:
    """Raises BrokerError."""
    setting = activation.setting
    found = queue_figures(management(), setting.key, setting.subscribed.name)
    later = None
    if activation.added_at_start is not None and not patience_of(setting).later:
        later = found.added - activation.added_at_start
    # A broker that was restarted counts anew from what it holds: then nobody knows what came later.
    known = later if later is not None and later >= 0 else None
    return QueueReading(found.messages, found.scheduled, found.delivering, found.added, known)


def _decide(activation: Activation, reading: QueueReading, now: datetime) -> bool:
    before = DrainProgress(activation.idle_since, activation.delayed_since, activation.added_seen)
    after = advance_drain(reading, before, now)
    if after != before:
        going_on = Activation.objects.filter(pk=activation.pk, ending="")
        going_on.update(
            idle_since=after.idle_since, delayed_since=after.delayed_since, added_seen=after.added
        )
    ending = verdict(reading, after, patience_of(activation.setting), now)
    return ending is not None and set_ending(activation, ending, now)
