"""The runs of open activations as lists need them: bare facts, thousands at a time."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from agents.models import Activation, Run, Server
from agents.models.activation import OPEN_ACTIVATIONS
from console.reasons import Reason

_COLUMNS = (
    "activation_id", "server_id", "epoch", "wanted", "state", "connected", "problems", "blocked", "closed_at",
    "handled",
    "failed",
    "temporary",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenRun:
    """Named as in `Run`. Runs of one server share one `server`."""

    server: Server
    activation_id: UUID
    server_id: int
    epoch: int
    wanted: bool
    state: str
    connected: bool
    problems: list[Reason]
    blocked: dict[str, Any] | None
    closed_at: datetime | None
    handled: int
    failed: int
    temporary: int


def open_runs(settings: Iterable[int]) -> dict[int, list[OpenRun]]:
    """Every run of the open activations of these settings, by setting; sorted by server and epoch. Three
    queries."""
    started = Activation.objects.filter(setting__in=list(settings), state__in=OPEN_ACTIVATIONS).order_by()
    setting_of = dict(started.values_list("pk", "setting"))
    # By their ids and without an order: joined and sorted, SQLite begins with every run that ever was.
    rows = list(Run.objects.filter(activation__in=list(setting_of)).order_by().values_list(*_COLUMNS))
    servers = Server.objects.in_bulk({row[1] for row in rows})
    found: dict[int, list[OpenRun]] = defaultdict(list)
    for row in rows:
        found[setting_of[row[0]]].append(OpenRun(servers[row[1]], *row))
    for runs in found.values():
        runs.sort(key=lambda run: (run.server.name, run.epoch))
    return found
