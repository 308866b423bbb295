"""Describes what is watched of subscriptions: those that nobody consumes, that stand still though they are
fed, that a replay holds, or that wait for a person; KMAs that are heard and have lost their broker; address
settings that somebody changed."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.destinations.policies import drifting, policies_are_known
from agents.liveness import servers_without_broker
from agents.models import Destination, LaunchSetting, Run, SubscriptionState
from agents.provisioning.drain import Drain
from agents.provisioning.subscriptions import drains_of, fresh_states, subscriptions_are_known
from alerts.kinds import AlertKind, Observation, rules_of
from alerts.models import Severity
from alerts.rules import Thresholds
from console.ui.amounts import coarse, duration, instant, number
from dlq.models import JobState, ReplayJob
from dlq.subscriptions.operations import blocked_settings

MOST = 2000
MOST_NAMED = 8


def _unknown(live: frozenset[str]) -> Iterator[Observation]:
    """Nobody asks the broker at the moment: what was wrong may be so still, where the setting is on."""
    on = LaunchSetting.objects.filter(key__in=live, enabled=True).values_list("key", flat=True)
    yield from (Observation(subject, None) for subject in on)


def _of_subscription(row: SubscriptionState, seconds: float) -> Observation:
    facts = {"setting": row.setting.key, "waiting": row.waiting, "consumers": row.consumers}
    pools = frozenset([row.setting.pool_id])
    return Observation(row.setting.key, max(0.0, seconds), setting=row.setting_id, pools=pools, facts=facts)


def unfed_subscriptions(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    if not subscriptions_are_known(now):
        yield from _unknown(live)
        return
    for row in fresh_states(now)[:MOST]:
        if row.unfed_since is not None:
            yield _of_subscription(row, (now - row.unfed_since).total_seconds())


# A child that passed the limit of its setting is killed, and the message settled, within this.
KILLED_WITHIN_SECONDS = 30.0
# Of a setting without a limit: so many times the time that a subscription without a handler may stand still.
WITHOUT_LIMIT = 5.0


def patience(upper: float, limit_seconds: float, *, handling: bool) -> float:
    """Returns for how many seconds a subscription may acknowledge nothing while messages wait. `upper`: where
    the agent handles nothing either. `limit_seconds` of one handling, 0: none."""
    if not handling:
        return upper
    if limit_seconds:
        return max(upper, limit_seconds + KILLED_WITHIN_SECONDS)
    return WITHOUT_LIMIT * upper


def stalled_subscriptions(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """What stands still for less than it may is calm."""
    if not subscriptions_are_known(now):
        yield from _unknown(live)
        return
    rows = [row for row in fresh_states(now)[:MOST] if row.still_since is not None]
    busy = Run.objects.filter(
        activation__setting__in=[row.setting_id for row in rows], closed_at=None, in_progress__gt=0
    )
    handling = set(busy.values_list("activation__setting", flat=True))
    rules = rules_of(STALLED) if rows else None
    for row in rows:
        assert row.still_since is not None and rules is not None
        limits = rules.of([row.setting.pool_id]) or STALLED.limits
        limit = row.setting.handling_timeout_seconds
        allowed = patience(limits.upper, limit, handling=row.setting_id in handling)
        seconds = (now - row.still_since).total_seconds()
        yield _of_subscription(row, seconds if seconds >= allowed else 0.0)


def without_broker(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    for server, runs in servers_without_broker(now):
        pools = frozenset(pool.pk for pool in server.pools.all())
        facts = {"server": server.name, "runs": runs}
        yield Observation(server.name, 1.0, server=server.pk, pools=pools, facts=facts)


def drifting_policies(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    if not policies_are_known(now):
        yield from (Observation(subject, None) for subject in live)
        return
    rows = drifting(now)[:MOST]
    pools: dict[str, set[int]] = {}
    destinations: dict[str, int] = {}
    places = Destination.objects.filter(name__in=[row.address for row in rows])
    for address, destination, pool in places.values_list("name", "pk", "settings__pool"):
        destinations[address] = destination
        pools.setdefault(address, set()).update(() if pool is None else (pool,))
    for row in rows:
        assert row.differs_since is not None
        seconds = max(0.0, (now - row.differs_since).total_seconds())
        facts = {
            "address": row.address,
            "destination": destinations.get(row.address),
            "differing": row.differing[:MOST_NAMED],
        }
        yield Observation(row.address, seconds, pools=frozenset(pools.get(row.address, ())), facts=facts)


def _drifts(facts: Mapping[str, Any], value: float) -> str:
    text = _(
        "On the broker, the settings of address %(address)s differ from the desired settings: %(names)s."
    )
    return text % {"address": facts["address"], "names": ", ".join(facts["differing"])}


def _destination_url(facts: Mapping[str, Any]) -> str:
    """Asks no database: lists show many alerts. An address of the MA itself is no destination."""
    if (destination := facts.get("destination")) is None:
        return reverse("admin:health")
    return reverse("admin:destination", args=[destination])


def _stalled(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(key)s”: messages waiting: %(n)s, consumers: %(consumers)s, no acknowledgement for %(time)s.")
    return text % {
        "key": facts["setting"],
        "n": number(facts["waiting"]),
        "consumers": number(facts["consumers"]),
        "time": duration(round(value)),
    }


def _unfed(facts: Mapping[str, Any], value: float) -> str:
    text = _(
        "“%(key)s” is enabled, but its subscription has had no consumer for %(time)s; "
        "messages waiting: %(n)s."
    )
    return text % {"key": facts["setting"], "time": duration(round(value)), "n": number(facts["waiting"])}


def _without_broker(facts: Mapping[str, Any], value: float) -> str:
    count = int(facts["runs"])
    text = ngettext(
        "The KMA of %(server)s is not connected to the broker: %(n)s instance is receiving no messages.",
        "The KMA of %(server)s is not connected to the broker: %(n)s instances are receiving no messages.",
        count,
    )
    return text % {"server": facts["server"], "n": number(count)}


def _setting_url(facts: Mapping[str, Any]) -> str:
    return reverse("admin:setting", args=[facts["setting"]])


STALLED = AlertKind(
    name="subscription_stalled",
    label=gettext_lazy("Subscription stalled"),
    severity=Severity.BAD,
    limits=Thresholds(60.0, 60.0, open_after=timedelta(), close_after=timedelta(seconds=20)),
    unit=gettext_lazy("seconds without an acknowledgement while messages wait"),
    says=_stalled,
    measure=lambda value: duration(round(value)),
    what_to_do=gettext_lazy(
        "Open the setting. If a server has been processing one message for a long time and "
        "this is normal, set the setting's processing timeout to the longest allowed time. If "
        "the agent hangs or nothing is in progress, disable and re-enable the setting: its "
        "servers reconnect, and the messages are delivered again."
    ),
    url=_setting_url,
    observe=stalled_subscriptions,
)
UNFED = AlertKind(
    name="subscription_without_consumer",
    label=gettext_lazy("Subscription without a consumer"),
    severity=Severity.BAD,
    # A takeover takes up to half a minute.
    limits=Thresholds(120.0, 120.0, open_after=timedelta(), close_after=timedelta(seconds=20)),
    unit=gettext_lazy("seconds without a consumer"),
    says=_unfed,
    measure=lambda value: duration(round(value)),
    what_to_do=gettext_lazy(
        "No messages are lost: they wait in the queue. Open the setting and check that its "
        "pool has a server that is in service and offers the agent. Check that the KMA of "
        "this server is connected to the broker."
    ),
    url=_setting_url,
    observe=unfed_subscriptions,
)
# Messages that wait longer than this for their turn are a backlog.
BACKLOG_SECONDS = 300.0
LEAST_BACKLOG = 20
# Stands for: it does not shrink.
NEVER_SECONDS = 10 * 365 * 86_400.0


def drain_seconds(drain: Drain, upper: float) -> float:
    """Returns when the backlog will be gone, as an alert judges it: 0 where there is none, or where nothing
    moves, which is another alert."""
    if not drain.rate_out or drain.depth < LEAST_BACKLOG:
        return 0.0
    if drain.work_seconds < min(BACKLOG_SECONDS, upper):
        return 0.0
    return NEVER_SECONDS if drain.seconds is None else min(drain.seconds, NEVER_SECONDS)


def lasting_backlogs(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    if not subscriptions_are_known(now):
        yield from _unknown(live)
        return
    settings = {each.pk: each for each in LaunchSetting.objects.filter(enabled=True)[:MOST]}
    drains = drains_of(settings, now)
    rules = rules_of(BACKLOG) if drains else None
    for pk, drain in drains.items():
        setting = settings[pk]
        pools = frozenset([setting.pool_id])
        limits = (rules.of(pools) if rules else None) or BACKLOG.limits
        value = drain_seconds(drain, limits.upper)
        facts = {
            "setting": setting.key,
            "waiting": drain.depth,
            "in": drain.rate_in,
            "out": drain.rate_out,
            "never": drain.seconds is None,
        }
        yield Observation(setting.key, value, setting=pk, pools=pools, facts=facts)


def _backlog(facts: Mapping[str, Any], value: float) -> str:
    text = _(
        "“%(key)s”: the backlog will be processed in about %(time)s (messages waiting: %(n)s, "
        "arriving: %(incoming)s/min, leaving: %(outgoing)s/min)."
    )
    if facts["never"]:
        text = _(
            "“%(key)s”: the backlog is not shrinking (messages waiting: %(n)s, arriving: "
            "%(incoming)s/min, leaving: %(outgoing)s/min)."
        )
    return text % {
        "key": facts["setting"],
        "time": coarse(timedelta(seconds=value)),
        "n": number(facts["waiting"]),
        "incoming": number(round(60 * facts["in"])),
        "outgoing": number(round(60 * facts["out"])),
    }


BACKLOG = AlertKind(
    name="backlog_lasting",
    label=gettext_lazy("Backlog will not drain in time"),
    severity=Severity.WARNING,
    limits=Thresholds(14_400.0, 14_400.0, open_after=timedelta(seconds=30), close_after=timedelta(minutes=1)),
    unit=gettext_lazy("seconds until the backlog is processed"),
    says=_backlog,
    measure=lambda value: "" if value >= NEVER_SECONDS else duration(round(value)),
    what_to_do=gettext_lazy(
        "Raise the number of concurrent messages or add servers to the pool. If processing has "
        "become slower, find out why. The alert closes when the backlog will be processed in time."
    ),
    url=_setting_url,
    observe=lasting_backlogs,
)
WITHOUT_BROKER = AlertKind(
    name="kma_without_broker",
    label=gettext_lazy("KMA not connected to the broker"),
    severity=Severity.BAD,
    limits=Thresholds(1.0, 1.0, open_after=timedelta(seconds=60), close_after=timedelta(seconds=30)),
    unit=gettext_lazy("1 while the KMA is not connected"),
    says=_without_broker,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "Check the address in KMA_AMQP_URL and the network between this server and the "
        "broker. The KMA log shows the cause. Meanwhile, messages wait on the broker."
    ),
    url=lambda facts: reverse("admin:server", args=[facts["server"]]),
    observe=without_broker,
)
DRIFT = AlertKind(
    name="policy_drift",
    label=gettext_lazy("Address settings changed on the broker"),
    severity=Severity.WARNING,
    # Saved wishes reach the broker within seconds.
    limits=Thresholds(120.0, 120.0, open_after=timedelta(), close_after=timedelta()),
    unit=gettext_lazy("seconds since the difference was found"),
    says=_drifts,
    measure=lambda value: duration(round(value)),
    what_to_do=gettext_lazy(
        "Open the destination to compare the desired and actual values. Write the desired "
        "values to the broker, or adopt the broker's values. If the address belongs to the MA "
        "itself, run ./ma manage provision."
    ),
    url=_destination_url,
    observe=drifting_policies,
)


# Watches ordered subscriptions that stand still until a person decides: nobody else will try that message
# again.


def waiting_for_a_person(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Yields those of enabled settings. The message is not named: alerts outlive it."""
    for setting, blocking in blocked_settings(MOST):
        if blocking.blocked.retry_seconds is None:
            facts = {"setting": setting.key, "attempt": blocking.blocked.attempt, "server": blocking.server}
            yield Observation(
                setting.key, 1.0, setting=setting.pk, pools=frozenset([setting.pool_id]), facts=facts
            )


def _stands(facts: Mapping[str, Any], value: float) -> str:
    text = _(
        "“%(key)s” is stalled: its first message failed on attempt %(n)s, and only an operator can retry it."
    )
    return text % {"key": facts["setting"], "n": number(facts["attempt"])}


WAITS = AlertKind(
    name="waits_for_person",
    label=gettext_lazy("Waiting for an operator"),
    severity=Severity.BAD,
    # While somebody has it tried again it does not block.
    limits=Thresholds(1.0, 1.0, open_after=timedelta(seconds=60), close_after=timedelta(seconds=30)),
    unit=gettext_lazy("1 while the message waits"),
    says=_stands,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "Find the cause in the message's failures. Fix it and retry the message, or move the "
        "message to the DLQ."
    ),
    url=lambda facts: reverse("admin:waiting", args=[facts["setting"]]),
    observe=waiting_for_a_person,
)

# Watches subscriptions that a replay holds, so that its dead letters go ahead of what waits.


def held_subscriptions(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Yields the longest first. Of a paused replay nothing makes the hold shorter: it opens at once."""
    held = LaunchSetting.objects.exclude(held_by=None)[:MOST]
    settings = {row.held_by: row for row in held if row.held_by is not None}
    jobs = ReplayJob.objects.filter(pk__in=list(settings), hold_until__isnull=False).order_by("held_at")
    rules = rules_of(HELD) if settings else None
    for job in jobs:
        setting = settings[job.pk]
        assert job.held_at is not None and job.hold_until is not None
        pools, paused = frozenset([setting.pool_id]), job.state == JobState.PAUSED
        limits = rules.of(pools) if rules else None
        seconds = max(0.0, (now - job.held_at).total_seconds())
        facts = {
            "setting": setting.key,
            "replay": str(job.pk),
            "seconds": seconds,
            "until": job.hold_until.isoformat(),
            "paused": paused,
        }
        value = max(seconds, limits.upper) if paused and limits else seconds
        yield Observation(setting.key, value, setting=setting.pk, pools=pools, facts=facts)


def _is_held(facts: Mapping[str, Any], value: float) -> str:
    text = _(
        "“%(key)s”: the subscription has been on hold for %(time)s because of replay %(id)s. "
        "Other messages are waiting. The hold ends automatically by %(until)s."
    )
    if facts["paused"]:
        text = _(
            "“%(key)s”: the subscription has been on hold for %(time)s because of the paused "
            "replay %(id)s. Other messages are waiting. The hold ends automatically by %(until)s."
        )
    return text % {
        "key": facts["setting"],
        "id": facts["replay"][:8],
        "time": duration(round(facts["seconds"])),
        "until": instant(datetime.fromisoformat(facts["until"])),
    }


HELD = AlertKind(
    name="subscription_held",
    label=gettext_lazy("Subscription on hold for a replay"),
    severity=Severity.WARNING,
    limits=Thresholds(300.0, 300.0, open_after=timedelta(), close_after=timedelta()),
    unit=gettext_lazy("seconds since the subscription hold started"),
    says=_is_held,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "Open the replay and check its progress. If there is no progress, release the "
        "subscription on the replay page: unprocessed messages are placed after the waiting "
        "messages. If the replay is paused, resume it or release its subscription."
    ),
    url=lambda facts: reverse("admin:replay", args=[facts["replay"]]),
    observe=held_subscriptions,
)

KINDS = (STALLED, UNFED, BACKLOG, WITHOUT_BROKER, DRIFT, WAITS, HELD)
