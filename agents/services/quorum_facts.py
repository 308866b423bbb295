"""What the rule of `quorum` asks of the rows: who else there is, and since when a setting is given up."""

from collections.abc import Collection
from datetime import datetime

from agents.models import Activation, Duty, Interruption, OfferedAgent, Run, Server
from agents.services.quorum import Other


def others_of(activation: Activation, given_up_by: Collection[int]) -> list[Other]:
    """The servers of the pool, and those that had a run of this activation, without these (primary keys), by
    name."""
    setting = activation.setting
    pool = set(setting.pool.servers.values_list("pk", flat=True))
    runs = (
        Run.objects.filter(activation=activation.pk)
        .order_by()
        .values_list("server_id", "wanted", "closed_at")
    )
    had = {server for server, _wanted, _closed_at in runs}
    running = {server for server, wanted, closed_at in runs if wanted and closed_at is None}
    offered = OfferedAgent.objects.filter(name=setting.agent, kind=setting.kind).order_by()
    offering = set(offered.values_list("server_id", flat=True))
    servers = Server.objects.filter(pk__in=(pool | had) - set(given_up_by)).order_by("name")
    return [
        Other(
            name=server.name,
            seen_at=server.last_seen_at,
            in_pool=server.pk in pool,
            offers=server.pk in offering,
            runs=server.pk in running,
            off_duty=server.duty != Duty.ACTIVE,
            duty_since=server.duty_since,
        )
        for server in servers
    ]


def given_up_at(runs: Collection[Run]) -> datetime | None:
    """When the first of these interrupted runs was: as its record came, else as it was closed. None: not
    known yet."""
    told = dict(
        Interruption.objects.filter(run__in=runs).order_by("-received_at").values_list("run", "received_at")
    )
    known = [at for run in runs if (at := told.get(run.pk, run.closed_at)) is not None]
    return min(known, default=None)
