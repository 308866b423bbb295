"""Describes what is watched of subscriptions beside their movement: those that a replay holds or that wait
for a person; KMAs that are heard and have lost their broker; address settings that somebody changed."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.destinations.policies import drifting, policies_are_known
from agents.liveness import servers_without_broker
from agents.models import Destination, LaunchSetting
from alerts.kinds import AlertKind, Observation, rules_of
from alerts.models import Severity
from alerts.rules import Thresholds
from console.ui.amounts import duration, instant, number
from dlq.models import JobState, ReplayJob
from dlq.subscriptions.operations import blocked_settings

MOST = 2000
MOST_NAMED = 8


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


def _without_broker(facts: Mapping[str, Any], value: float) -> str:
    count = int(facts["runs"])
    text = ngettext(
        "The KMA of %(server)s is not connected to the broker: %(n)s instance is not receiving messages.",
        "The KMA of %(server)s is not connected to the broker: %(n)s instances are not receiving messages.",
        count,
    )
    return text % {"server": facts["server"], "n": number(count)}


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

KINDS = (WITHOUT_BROKER, DRIFT, WAITS, HELD)
