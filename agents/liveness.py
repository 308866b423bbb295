"""Describes which servers are heard, and how they are asked to poll. Silence of a server counts only while we
could have heard it: the MA's own absence must not move any run. After how long a server is lost says
`agents.models.server.lost_before`."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from agents.models import (
    LaunchSetting,
    Pool,
    Run,
    RunPhase,
    Server,
    ServerToken,
    SettingKind,
    SiteIdentity,
    Spread,
)
from agents.models.server import lost_before
from agents.models.site import ONLY
from console import task_queue

# A standalone agent of an ANY setting ends itself so long after the sending of its last answered heartbeat.
LEASE_SECONDS = 15.0
# Nobody takes over before so long after that: its processes need a moment to end.
LEASE_MARGIN_SECONDS = 10.0


def note_hearing_again(server: Server, now: datetime) -> None:
    """Call it for a server that was silent, before its heartbeat is stored. When nobody else was heard
    either, it was us who were away (or just begin): the patience with all others starts anew."""
    if not Server.objects.filter(last_seen_at__gt=lost_before(now)).exclude(pk=server.pk).exists():
        SiteIdentity.objects.update_or_create(pk=ONLY, defaults={"hearing_since": now})


def silence_counts(now: datetime) -> bool:
    """Returns whether a server that is silent now was given the time to be heard."""
    return heard_for(timedelta(seconds=settings.MA_LOST_AFTER_SECONDS), now)


def heard_for(length: timedelta, now: datetime) -> bool:
    """Returns whether the MA was there for so long: who was silent all that time was silent indeed."""
    since = SiteIdentity.objects.filter(pk=ONLY).values_list("hearing_since", flat=True).first()
    return since is None or now - since >= length


def leased(setting: LaunchSetting) -> bool:
    """Returns whether only a lease keeps two runs of it from running at once; those that take messages the
    broker fences."""
    return not setting.takes_messages and setting.spread == Spread.ANY


def lease_over_before(now: datetime) -> datetime:
    """A server last seen at this instant or earlier runs nothing any more that only a lease allowed."""
    patience = max(settings.MA_LOST_AFTER_SECONDS, LEASE_SECONDS + LEASE_MARGIN_SECONDS)
    return now - timedelta(seconds=patience)


def taken_over_before(setting: LaunchSetting, now: datetime) -> datetime:
    """Runs of this setting are taken over from servers last seen at this instant or earlier."""
    return lease_over_before(now) if leased(setting) else lost_before(now)


# -- expected servers: every page and check that speaks of a missing server asks here ------------------------


def expected_servers() -> QuerySet[Server]:
    """Returns servers in a pool, or with a valid token. Another one is not missed when it is silent."""
    pools = Pool.servers.through.objects.filter(server=OuterRef("pk"))
    tokens = ServerToken.objects.filter(server=OuterRef("pk"), revoked_at=None)
    return Server.objects.filter(Exists(pools) | Exists(tokens))


def is_expected(server: Server) -> bool:
    return expected_servers().filter(pk=server.pk).exists()


# -- which servers are heard and have lost the broker, by what their KMAs say themselves ---------------------


MOST = 2000


def servers_without_broker(now: datetime) -> list[tuple[Server, int]]:
    """They run message agents, and none of these is connected; with how many runs get nothing. One query
    where there is none, else three."""
    # From the open runs: from the servers, every run that ever was would be read to be left out.
    running = Run.objects.filter(
        wanted=True,
        closed_at=None,
        state__in=(RunPhase.STARTING, RunPhase.RUNNING),
        activation__setting__kind=SettingKind.MESSAGE,
        server__last_seen_at__gt=lost_before(now),
    )
    counted = (
        running.order_by().values("server").annotate(runs=Count("pk"), fed=Count("pk", Q(connected=True)))
    )
    unfed = dict(counted.filter(fed=0).values_list("server", "runs")[:MOST])
    return [(each, unfed[each.pk]) for each in Server.objects.filter(pk__in=unfed).prefetch_related("pools")]


# -- has KMAs poll their desired state at once ---------------------------------------------------------------
# Nothing depends on it: each does so every 2 s anyway.


def poll_after_commit(servers: Iterable[str]) -> None:
    names = sorted(set(servers))
    if names:
        transaction.on_commit(lambda: poll(names), robust=True)


def poll(servers: Iterable[str]) -> None:
    """Best effort: Redis may be away, then the first failure ends it."""
    for server in servers:
        if not task_queue.send("kma.poll", queue=f"kma.{server}", keep=1):
            return
