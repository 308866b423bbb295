"""Each minute: what lies in the broker's queues, of each setting and of all together.

What could not be asked is a gap, never a 0. Who comes first in a minute asks; killed then, the minute is a
gap.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass
from datetime import datetime
from functools import partial

import structlog
from django.db.models import Q

from agents.models import LaunchSetting
from agents.provisioning.queue_counts import QueueFigures, figures_of_all
from broker.management.queues import oldest_age
from broker.port import BrokerError, BrokerUnavailable
from console.broker import management, with_timeout
from metrics.intake import scopes_of
from metrics.models import GAUGES, MetricsMark, Summed, key_of
from metrics.rollup import TABLES, turn
from metrics.rules import minute_of

log = structlog.get_logger(__name__)

# Ages of oldest messages are asked for one by one, for so long; the next minute begins with others.
AGES_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Depths:
    """In the order of `GAUGES`."""

    waiting: int
    delayed: int
    in_delivery: int
    dead: int
    oldest_seconds: float | None


def sample(now: datetime) -> None:
    minute = minute_of(now)
    MetricsMark.objects.get_or_create(pk=1)
    if not MetricsMark.objects.filter(~Q(sampled=minute), pk=1).update(sampled=minute):
        return
    settings = [each for each in LaunchSetting.objects.order_by("pk") if each.takes_messages]
    try:
        found = with_timeout(lambda: figures_of_all(settings, now))
    except BrokerError as error:
        log.info("queues not sampled", reason=str(error))
        return
    ages = _ages(_rotated([key for key, each in found.items() if each.waiting], minute))
    depths: dict[int | None, Depths] = {
        each.pk: _depths(found[each.key], ages.get(each.key)) for each in settings if each.key in found
    }
    depths[None] = total(depths.values())
    store(depths, minute)


def _depths(of: QueueFigures, age: float | None) -> Depths:
    """Of an empty queue it is known that nothing waits."""
    return Depths(of.waiting, of.delayed, of.in_delivery, of.dead, age if of.waiting else 0.0)


def total(of: Collection[Depths]) -> Depths:
    """`oldest_seconds` is unknown where that of one of them is."""
    ages = [each.oldest_seconds for each in of]
    known = [age for age in ages if age is not None]
    return Depths(
        waiting=sum(each.waiting for each in of),
        delayed=sum(each.delayed for each in of),
        in_delivery=sum(each.in_delivery for each in of),
        dead=sum(each.dead for each in of),
        oldest_seconds=max(known, default=0.0) if len(known) == len(ages) else None,
    )


def _rotated(keys: list[str], minute: int) -> list[str]:
    """Where time is short, others are asked about next time."""
    begin = minute * 37 % len(keys) if keys else 0
    return keys[begin:] + keys[:begin]


def _ages(keys: Collection[str]) -> dict[str, float]:
    ends_at = time.monotonic() + AGES_SECONDS
    found = {}
    for key in keys:
        if time.monotonic() >= ends_at:
            break
        try:
            age = with_timeout(partial(oldest_age, management(), key))
        except BrokerUnavailable as error:
            log.info("ages of oldest messages unknown", reason=str(error))
            break
        except BrokerError as error:
            log.info("age of the oldest message unknown", setting=key, reason=str(error))
            continue
        if age is not None:
            found[key] = age
    return found


def store(depths: Mapping[int | None, Depths], minute: int) -> None:
    """By setting, and None of all together: the last value of its minute, hour and day."""
    scopes = scopes_of({(setting, None) for setting in depths})
    values = {
        scopes[setting, None]: dict(zip(GAUGES, astuple(each), strict=True))
        for setting, each in depths.items()
    }
    with turn(wait=True):
        for unit, table in TABLES.items():
            rows: list[Summed] = [
                table(key=key_of(scope, minute // unit), scope_id=scope, span=minute // unit, **gauges)
                for scope, gauges in sorted(values.items())
            ]
            table._default_manager.bulk_create(
                rows, update_conflicts=True, unique_fields=["key"], update_fields=list(GAUGES)
            )
