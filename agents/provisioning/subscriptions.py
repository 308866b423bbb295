"""Looks at the subscriptions of enabled settings, every few seconds, and writes down since when one stands
still.

One question to the broker for all of them. Killed anywhere, the next look goes on from the rows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db.models import Exists, F, OuterRef, Q

from agents.freezes.queries import frozen_now
from agents.models import (
    WAITING_STATES,
    Acknowledgement,
    Duty,
    LaunchSetting,
    Pool,
    Run,
    ServerStop,
    SubscriptionState,
    Timing,
)
from agents.models.setting import AckMode
from agents.provisioning.drain import DrainEstimate, Sample, estimate, kept
from broker.management.queues import QueueFigures, figures_of_all
from broker.port import BrokerError
from console.broker import management
from console.processes import lock

log = structlog.get_logger(__name__)

# -- whether a subscription is moving and is fed -------------------------------------------------------------
# Pure: what was seen before and now in, since when it is not out.


@dataclass(frozen=True, slots=True)
class Seen:
    """The broker's figures of one instant. `waiting`: deliverable now and not in delivery."""

    waiting: int
    in_delivery: int
    consumers: int
    acknowledged: int
    at: datetime


@dataclass(frozen=True, slots=True)
class SubscriptionProgress:
    still_since: datetime | None = None
    unfed_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """`consumers` are to be there all the time. `still`: it stands still by an order or waits for somebody
    else."""

    consumers: bool
    still: bool = False


def follow_subscription(
    before: Seen | None,
    known: SubscriptionProgress,
    seen: Seen,
    expected: Expected,
) -> SubscriptionProgress:
    """The time of one that is expected to stand still begins when that is over. A counter that went back was
    restarted: that is a change, too.

    What is not seen for a while counts as what it was: who was not looked at did not move in between.
    """
    stands = (
        before is not None
        and not expected.still
        and seen.waiting > 0
        and seen.consumers > 0
        and before.waiting > 0
        and before.acknowledged == seen.acknowledged
    )
    since = (known.still_since or (before.at if before else seen.at)) if stands else None
    unfed = expected.consumers and seen.consumers == 0
    return SubscriptionProgress(since, (known.unfed_since or seen.at) if unfed else None)


# Two processes that ask at once do no harm; with a broker that hangs they would pile up.
HELD_FOR = timedelta(seconds=30)
# What was seen longer ago says nothing of now.
KNOWN = timedelta(seconds=60)
COLUMNS = (
    "waiting",
    "in_delivery",
    "consumers",
    "acknowledged",
    "seen_at",
    "still_since",
    "unfed_since",
    "samples",
)


def watch_subscriptions(now: datetime) -> int:
    """Returns how many were seen. While the broker is away the rows stay as they are, and grow old."""
    with lock("subscriptions", HELD_FOR) as free:
        if not free:
            return 0
        settings = {each.key: each for each in _watched()}
        SubscriptionState.objects.exclude(setting__in=[each.pk for each in settings.values()]).delete()
        if not settings:
            return 0
        try:
            found = figures_of_all(management())
        except BrokerError as error:
            log.info("subscriptions not checked", reason=str(error))
            return 0
        known = {row.setting_id: row for row in SubscriptionState.objects.all()}
        idle, still, frozen = out_of_service(settings.values()), _expected_still(), frozen_now(now)
        rows = [
            _next(
                setting,
                known.get(setting.pk),
                found[key],
                now,
                Expected(
                    consumers=setting.timing == Timing.ASAP
                    and setting.pk not in idle
                    and frozen.of([setting.pool_id]) is None,
                    still=setting.pk in still,
                ),
            )
            for key, setting in settings.items()
            if key in found
        ]
        SubscriptionState.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["setting"], update_fields=COLUMNS
        )
        return len(rows)


def fresh_states(now: datetime) -> list[SubscriptionState]:
    """Returns what is known of now, with the settings."""
    rows = SubscriptionState.objects.filter(seen_at__gt=now - KNOWN).filter(
        Q(still_since__isnull=False) | Q(unfed_since__isnull=False)
    )
    return list(rows.select_related("setting").order_by(F("still_since").asc(nulls_last=True), "unfed_since"))


def subscriptions_are_known(now: datetime) -> bool:
    """Returns whether anything was seen lately: else nobody can say what moves."""
    return SubscriptionState.objects.filter(seen_at__gt=now - KNOWN).exists()


def _watched() -> list[LaunchSetting]:
    """Those that take messages and are on; provisioned, so that the broker has their queues. One that is held
    stands still on purpose."""
    enabled = LaunchSetting.objects.filter(enabled=True, hold="", destination__isnull=False).exclude(
        provisioned_hash=""
    )
    return list(enabled.only("key", "timing", "pool"))


def _expected_still() -> frozenset[int]:
    """Returns settings whose subscription acknowledges nothing, and nobody wonders: an ordered one with a
    message that failed; one of the mode CLIENT whose messages wait for their answer and whose agent handles
    none."""
    blocked = Run.objects.filter(closed_at=None, blocked__isnull=False, activation__setting__ordered=True)
    answers = Acknowledgement.objects.filter(setting=OuterRef("pk"), ended_at=None, state__in=WAITING_STATES)
    busy = Run.objects.filter(activation__setting=OuterRef("pk"), closed_at=None, in_progress__gt=0)
    unanswered = LaunchSetting.objects.filter(Exists(answers), ~Exists(busy), mode=AckMode.CLIENT)
    return frozenset(blocked.values_list("activation__setting", flat=True)) | frozenset(
        unanswered.values_list("pk", flat=True)
    )


def out_of_service(settings: Iterable[LaunchSetting]) -> frozenset[int]:
    """Returns those that people keep from every server of their pool: cordoned, draining, or stopped there.
    Two queries."""
    servers: dict[int, set[int]] = defaultdict(set)
    kept: set[int] = set()
    for pool, server, duty in Pool.servers.through.objects.values_list("pool", "server", "server__duty"):
        servers[pool].add(server)
        if duty != Duty.ACTIVE:
            kept.add(server)
    stopped: dict[int, set[int]] = defaultdict(set)
    for setting, server in ServerStop.objects.values_list("setting", "server"):
        stopped[setting].add(server)
    return frozenset(
        each.pk
        for each in settings
        if (those := servers.get(each.pool_id)) and those <= kept | stopped[each.pk]
    )


def _next(
    setting: LaunchSetting,
    row: SubscriptionState | None,
    figures: QueueFigures,
    now: datetime,
    expected: Expected,
) -> SubscriptionState:
    seen = Seen(figures.waiting, figures.delivering, figures.consumers, figures.acknowledged, now)
    before = Seen(row.waiting, row.in_delivery, row.consumers, row.acknowledged, row.seen_at) if row else None
    known = SubscriptionProgress(row.still_since, row.unfed_since) if row else SubscriptionProgress()
    progress = follow_subscription(before, known, seen, expected)
    return SubscriptionState(
        setting=setting,
        waiting=seen.waiting,
        in_delivery=seen.in_delivery,
        consumers=seen.consumers,
        acknowledged=seen.acknowledged,
        seen_at=now,
        still_since=progress.still_since,
        unfed_since=progress.unfed_since,
        samples=[
            [each.at, each.added, each.depth]
            for each in kept(
                _samples(row),
                Sample(now.timestamp(), figures.added, figures.waiting + figures.delivering),
            )
        ],
    )


def _samples(row: SubscriptionState | None) -> list[Sample]:
    return [Sample(*each) for each in row.samples] if row else []


def drains_of(settings: Collection[int], now: datetime) -> dict[int, DrainEstimate]:
    """Returns by setting when its backlog will be gone, where that is known of now; not of those that a
    schedule starts. One query."""
    rows = SubscriptionState.objects.filter(
        setting__in=settings, setting__timing=Timing.ASAP, seen_at__gt=now - KNOWN
    )
    found = ((row.setting_id, estimate(_samples(row))) for row in rows)
    return {setting: drain for setting, drain in found if drain is not None}
