"""One look at everything: each kind observes, each cause is decided on, what changed is written down.

One process looks at a time, and for a bounded time: the kinds that it did not come to are first in the next
look.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import structlog
from django.db import DatabaseError

from alerts.kinds import MORE, AlertKind, Observation, Rules, rules_of
from alerts.models import LIVE_ALERTS, Alert, AlertEvaluation, AlertState
from alerts.recording import record, state_of
from alerts.rules import AlertDecision, AlertStep, Thresholds, decide_alert
from alerts.sources import every_kind
from console.processes import lock

log = structlog.get_logger(__name__)

# -- storms --------------------------------------------------------------------------------------------------
# So many alerts of a kind in an hour open one each; all others are counted in a single one.


MOST_OPENED = 10
WITHIN = timedelta(hours=1)
# Subjects that the collective alert remembers; those beyond are counted too.
MOST_REMEMBERED = 500


@dataclass(frozen=True, slots=True)
class Collected:
    """Divides causes that are to open: `subjects` get an alert of their own, the others share one."""

    own: frozenset[str]
    more: Sequence[Observation]

    def observation(self) -> Observation:
        """Returns all others as one cause. It concerns everybody where one of them does."""
        pools: frozenset[int] = frozenset()
        if all(seen.pools for seen in self.more):
            pools = frozenset().union(*(seen.pools for seen in self.more))
        subjects = [seen.subject for seen in self.more[:MOST_REMEMBERED]]
        return Observation(MORE, float(len(self.more)), pools=pools, facts={"subjects": subjects})


def collect(opening: Sequence[Observation], known: Mapping[str, Alert], now: datetime) -> Collected:
    """`opening`: the gravest first. What the collective alert counts already stays there while it lasts, so
    that a storm of an hour ago is not told one by one afterwards."""
    counted = _counted(known.get(MORE))
    lately = sum(
        alert.opened_at is not None and alert.opened_at > now - WITHIN
        for subject, alert in known.items()
        if subject != MORE
    )
    free = max(0, MOST_OPENED - lately)
    own = frozenset([seen.subject for seen in opening if seen.subject not in counted][:free])
    return Collected(own, [seen for seen in opening if seen.subject not in own])


def _counted(alert: Alert | None) -> frozenset[str]:
    if alert is None or (alert.state == AlertState.CLOSED and not alert.held):
        return frozenset()
    return frozenset(alert.facts.get("subjects", ()))


# A look takes at most so long, and the kind that is at hand; a process that was killed is followed after the
# lock.
BUDGET_SECONDS = 10.0
HELD_FOR = timedelta(seconds=120)
# What closed longer ago and was let go begins anew.
REMEMBERED = timedelta(hours=1)
# Alerts of one kind that a look takes up.
MOST_KNOWN = 2000
# They are looked at every ten seconds.
LATE = timedelta(minutes=2)


def evaluate_all(now: datetime) -> int:
    """Returns how many transitions were made."""
    deadline = time.monotonic() + BUDGET_SECONDS
    made = 0
    with lock("alerts", HELD_FOR) as mine:
        for kind in _longest_ago_first() if mine else ():
            try:
                made += evaluate_kind(kind, now)
            except DatabaseError:
                raise
            except Exception:
                # The others go on; its alerts stay as they are, and the health page tells it.
                log.exception("alerts not evaluated", kind=kind.name)
            else:
                _note(kind, now)
            if time.monotonic() >= deadline:
                break
    return made


def evaluate_kind(kind: AlertKind, now: datetime) -> int:
    """Returns how many transitions were made."""
    known = {alert.subject: alert for alert in _known(kind, now)}
    live = frozenset(
        subject for subject, alert in known.items() if alert.state in LIVE_ALERTS and subject != MORE
    )
    observed = {seen.subject: seen for seen in kind.observe(now, live)}
    gone = [Observation(subject, 0.0) for subject in known if subject not in observed and subject != MORE]
    rules = rules_of(kind)
    decided = [
        _decided(seen, known.get(seen.subject), kind, rules, now) for seen in [*observed.values(), *gone]
    ]
    opening = [seen for seen, decision in decided if decision.step is AlertStep.OPENED]
    collected = collect(opening, known, now)
    made = sum(
        _made(seen, decision, known, kind, now)
        for seen, decision in decided
        if decision.step is not AlertStep.OPENED or seen.subject in collected.own
    )
    return made + _collective(collected, known, kind, rules, now)


def _decided(
    seen: Observation, alert: Alert | None, kind: AlertKind, rules: Rules, now: datetime
) -> tuple[Observation, AlertDecision]:
    """What nobody watches any more is as if it had gone."""
    limits = rules.of(seen.pools)
    value = 0.0 if limits is None else seen.value
    return seen, decide_alert(state_of(alert), value, now, limits or kind.limits)


def _made(
    seen: Observation, decision: AlertDecision, known: dict[str, Alert], kind: AlertKind, now: datetime
) -> bool:
    return (
        record(known.get(seen.subject), seen, decision, kind, now) is not None and decision.step is not None
    )


def _collective(
    collected: Collected, known: dict[str, Alert], kind: AlertKind, rules: Rules, now: datetime
) -> bool:
    """The one alert for all causes beyond those that got one of their own."""
    alert = known.get(MORE)
    if alert is None and not collected.more:
        return False
    seen = collected.observation()
    limits = rules.of(seen.pools) or kind.limits
    at_least_one = _one_is_enough(limits)
    return _made(seen, decide_alert(state_of(alert), seen.value, now, at_least_one), known, kind, now)


def _known(kind: AlertKind, now: datetime) -> Sequence[Alert]:
    """The newest of each cause last, so that it is the one that counts. Three questions, each answered by an
    index: however many have closed, they are not looked through."""
    rows = Alert.objects.filter(kind=kind.name)
    parts = (
        rows.filter(state__in=(AlertState.CALM, *LIVE_ALERTS)),
        rows.filter(closed_at__gt=now - REMEMBERED),
        rows.filter(held=True),
    )
    found = {alert.pk: alert for part in parts for alert in part.order_by("-id")[:MOST_KNOWN]}
    return [found[pk] for pk in sorted(found)]


def _one_is_enough(limits: Thresholds) -> Thresholds:
    return replace(limits, upper=1.0, lower=1.0, open_after=timedelta())


def late_kinds(now: datetime) -> list[str]:
    """The labels of kinds that nobody looked at lately, though somebody did once: a worker that never ran is
    told by the health of beat."""
    return [str(kind.label) for kind, at in evaluated() if at is not None and now - at > LATE]


def _longest_ago_first() -> list[AlertKind]:
    never = datetime.min.replace(tzinfo=UTC)
    return [kind for kind, _at in sorted(evaluated(), key=lambda pair: pair[1] or never)]


def evaluated() -> list[tuple[AlertKind, datetime | None]]:
    """Each kind with the instant of its last whole look. One query."""
    found = dict(AlertEvaluation.objects.values_list("kind", "at"))
    return [(kind, found.get(kind.name)) for kind in every_kind()]


def _note(kind: AlertKind, now: datetime) -> None:
    rows = AlertEvaluation.objects.filter(kind=kind.name)
    if not rows.update(at=now):
        rows.get_or_create(kind=kind.name, defaults={"at": now})
