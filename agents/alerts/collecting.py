"""A storm is few alerts: so many of a kind in an hour open one each, all others are counted in a single
one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.alerts.kinds import MORE, Observation
from agents.models import Alert, AlertState

MOST_OPENED = 10
WITHIN = timedelta(hours=1)
# Subjects that the collective alert remembers; those beyond are counted too.
MOST_REMEMBERED = 500


@dataclass(frozen=True, slots=True)
class Collected:
    """Of the causes that are to open: the subjects that get an alert of their own, and the others."""

    own: frozenset[str]
    more: Sequence[Observation]

    def observation(self) -> Observation:
        """Of all others as one cause. Everybody is told where one of them concerns everybody."""
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
