"""Describes what planning asks of the rows: read once, for any number of activations."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q

from agents.activations.rules.placement import Candidate, Current
from agents.liveness import leased, silence_counts, taken_over_before
from agents.models import (
    Activation,
    Duty,
    LaunchSetting,
    OfferedAgent,
    Pool,
    Run,
    RunPhase,
    Server,
    ServerState,
    ServerStop,
    Timing,
)

# Pool, agent, its kind, whether only a lease keeps it from running twice: settings alike in these have one
# choice.
Alike = tuple[int, str, str, bool]


@dataclass(frozen=True, slots=True)
class PlanningFacts:
    """True of the instant at which they were read, and only of the activations they were read for. `members`:
    the servers of each pool. `offering`: servers by agent and kind. `load`: runs wanted now by server.
    `newest`: what each activation has. `leaving`: settings with a run that is not wanted any more and not
    closed. `stopped`: servers on which a person stopped it, by setting."""

    now: datetime
    silence_counts: bool
    members: Mapping[int, list[Server]]
    offering: Mapping[tuple[str, str], set[int]]
    load: Mapping[int, int]
    newest: Mapping[UUID, list[Current]]
    leaving: frozenset[int]
    stopped: Mapping[int, set[int]]
    _choices: dict[Alike, list[Candidate]] = field(default_factory=dict)

    def candidates(self, setting: LaunchSetting) -> list[Candidate]:
        """The servers of its pool, by name."""
        alike = (setting.pool_id, setting.agent, setting.kind, leased(setting))
        if alike not in self._choices:
            offering = self.offering.get((setting.agent, setting.kind), set())
            silent_since = taken_over_before(setting, self.now)
            servers = self.members.get(setting.pool_id, [])
            self._choices[alike] = [
                self._candidate(server, server.pk in offering, silent_since) for server in servers
            ]
        stopped = self.stopped.get(setting.pk)
        if not stopped:
            return self._choices[alike]
        return [replace(each, stopped=each.server in stopped) for each in self._choices[alike]]

    def _candidate(self, server: Server, offers: bool, silent_since: datetime) -> Candidate:
        silent = server.last_seen_at is None or server.last_seen_at <= silent_since
        return Candidate(
            server=server.pk,
            name=server.name,
            alive=server.state(self.now) is ServerState.ALIVE,
            offers=offers,
            load=self.load.get(server.pk, 0),
            lost=self.silence_counts and silent,
            cordoned=server.duty == Duty.CORDONED,
            draining=server.duty == Duty.DRAINING,
            obeys=server.obeys(self.now),
        )


def read_facts(activations: Collection[Activation], now: datetime) -> PlanningFacts:
    """Reads the facts of these activations, which come with their settings: as many queries for thousands as
    for one."""
    settings = [activation.setting for activation in activations]
    # Counted from the runs that are wanted: from the servers it would read every run they ever had.
    busy = Run.objects.filter(wanted=True, closed_at=None).order_by().values_list("server_id")
    leaving = Run.objects.filter(
        activation__setting__in=[each.pk for each in settings], wanted=False, closed_at=None
    )
    return PlanningFacts(
        now=now,
        silence_counts=silence_counts(now),
        members=_members({setting.pool_id for setting in settings}),
        offering=_offering({setting.agent for setting in settings}),
        load=dict(busy.annotate(Count("pk"))),
        newest=_newest({activation.pk: activation.setting for activation in activations}),
        leaving=frozenset(leaving.order_by().values_list("activation__setting", flat=True)),
        stopped=_stopped({setting.pk for setting in settings}),
    )


def _members(pools: Collection[int]) -> dict[int, list[Server]]:
    rows = Pool.servers.through.objects.filter(pool__in=pools).values_list("pool_id", "server_id")
    servers = Server.objects.in_bulk({server for _pool, server in rows})
    members: dict[int, list[Server]] = defaultdict(list)
    for pool, server in rows:
        members[pool].append(servers[server])
    for found in members.values():
        found.sort(key=lambda server: server.name)
    return members


def _offering(agents: Collection[str]) -> dict[tuple[str, str], set[int]]:
    offering: dict[tuple[str, str], set[int]] = defaultdict(set)
    offered = OfferedAgent.objects.filter(name__in=agents).order_by()
    for name, kind, server in offered.values_list("name", "kind", "server_id"):
        offering[name, kind].add(server)
    return offering


def _stopped(settings: Collection[int]) -> dict[int, set[int]]:
    stopped: dict[int, set[int]] = defaultdict(set)
    stops = ServerStop.objects.filter(setting__in=settings).order_by()
    for setting, server in stops.values_list("setting_id", "server_id"):
        stopped[setting].add(server)
    return stopped


def _newest(setting_of: Mapping[UUID, LaunchSetting]) -> dict[UUID, list[Current]]:
    """The newest runs that are wanted or interrupted. A message agent that runs as soon as possible never
    ends by itself: a run of it that is closed though it is wanted is made anew."""
    # By ids and without an order: else SQLite begins with every run that ever was.
    newer = Run.objects.filter(
        activation=OuterRef("activation"), server=OuterRef("server"), epoch__gt=OuterRef("epoch")
    )
    runs = Run.objects.filter(Q(wanted=True) | Q(state=RunPhase.INTERRUPTED), ~Exists(newer))
    rows = runs.filter(activation__in=list(setting_of)).order_by()
    newest: dict[UUID, list[Current]] = defaultdict(list)
    for activation, run, server, state, closed_at in rows.values_list(
        "activation_id", "pk", "server_id", "state", "closed_at"
    ):
        interrupted, setting = state == RunPhase.INTERRUPTED, setting_of[activation]
        continuous = setting.timing == Timing.ASAP and setting.takes_messages
        if interrupted or closed_at is None or not continuous:
            newest[activation].append(Current(run, server, over=interrupted or closed_at is not None))
    return newest
