"""Which servers have given an activation up: the run with the highest epoch there is interrupted."""

from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from agents.models import Run, RunPhase
from agents.services.open_runs import OpenRun

AnyRun = TypeVar("AnyRun", Run, OpenRun)


def newest_by_server(runs: Iterable[AnyRun]) -> dict[int, AnyRun]:
    """{server's primary key: its run with the highest epoch}."""
    newest: dict[int, AnyRun] = {}
    for run in runs:
        known = newest.get(run.server_id)
        if known is None or run.epoch > known.epoch:
            newest[run.server_id] = run
    return newest


def interrupted_now(activation_id: UUID) -> list[Run]:
    """Its runs that are interrupted and not followed by a newer one on their server, by the server's name."""
    runs = Run.objects.filter(activation=activation_id).select_related("server")
    newest = newest_by_server(runs).values()
    return sorted(
        (run for run in newest if run.state == RunPhase.INTERRUPTED), key=lambda run: run.server.name
    )
