"""Watches whether messages move: subscriptions that stand still though they are fed, that nobody consumes, or
whose backlog will not be gone in time."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import LaunchSetting, Run, SubscriptionState
from agents.provisioning.drain import DrainEstimate
from agents.provisioning.subscriptions import drains_of, fresh_states, subscriptions_are_known
from alerts.kinds import AlertKind, Observation, rules_of
from alerts.models import Severity
from alerts.rules import Thresholds
from console.ui.amounts import coarse, duration, number
from contract.histogram import bound
from metrics.queries import scope_of, totals

MOST = 2000


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
# Of a setting without a limit: so many times as long as it usually handles at most, and where nobody knows
# that, so many times the time that a subscription without a handler may stand still.
UNUSUAL, WITHOUT_LIMIT = 3.0, 5.0
USUAL_OF = timedelta(days=1)
# Fewer handlings say nothing of what is usual.
USUAL_NEEDS = 20


def patience(upper: float, limit_seconds: float, usual_seconds: float | None, *, handling: bool) -> float:
    """Returns for how many seconds a subscription may acknowledge nothing while messages wait. `upper`: where
    the agent handles nothing either. `limit_seconds` of one handling, 0: none. `usual_seconds`: the longest
    handling lately, None: unknown."""
    if not handling:
        return upper
    if limit_seconds:
        return max(upper, limit_seconds + KILLED_WITHIN_SECONDS)
    return WITHOUT_LIMIT * upper if usual_seconds is None else max(upper, UNUSUAL * usual_seconds)


def longest_handlings(settings: Collection[int], now: datetime) -> dict[int, float]:
    """Returns the longest of the last day by setting, where enough were handled."""
    scopes = {scope_of(pk): pk for pk in settings}
    figures = totals(list(scopes), now - USUAL_OF, now, now) if scopes else {}
    return {
        scopes[scope]: bound(max(each.processing))
        for scope, each in figures.items()
        if sum(each.processing.values()) >= USUAL_NEEDS
    }


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
    usual = longest_handlings(
        [row.setting_id for row in rows if not row.setting.handling_timeout_seconds], now
    )
    rules = rules_of(STALLED) if rows else None
    for row in rows:
        assert row.still_since is not None and rules is not None
        limits = rules.of([row.setting.pool_id]) or STALLED.limits
        limit = row.setting.handling_timeout_seconds
        allowed = patience(
            limits.upper, limit, usual.get(row.setting_id), handling=row.setting_id in handling
        )
        seconds = (now - row.still_since).total_seconds()
        yield _of_subscription(row, seconds if seconds >= allowed else 0.0)


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
        "Open the setting. If one message normally takes this long, set a sufficiently long "
        "processing timeout. If the agent hangs or nothing is in progress, disable and "
        "re-enable the setting: its servers reconnect, and the messages are delivered again."
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


def drain_seconds(drain: DrainEstimate, upper: float) -> float:
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
        "Raise the number of concurrent messages or add servers to the pool. If processing "
        "has become slower, find out why. The alert closes once the backlog is expected to be "
        "processed in time."
    ),
    url=_setting_url,
    observe=lasting_backlogs,
)

KINDS = (STALLED, UNFED, BACKLOG)
