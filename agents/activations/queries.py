"""Activations as lists show them: narrowed by what has an index, newest first, to be read page by page by
key."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db.models import Exists, F, OuterRef, QuerySet

from agents.models import Activation, LaunchSetting, Run, RunPhase, Server, Withheld
from agents.models.activation import OPEN_ACTIVATIONS
from agents.models.parameters import UnreadableJson
from console.reasons import Reason
from contract.wire import DEEPEST, deeper_than


@dataclass(frozen=True, slots=True)
class Listed:
    """`by` names the instant that orders the rows, newest first; `id` decides between equal ones."""

    rows: QuerySet[Activation]
    by: str


def activations(*, setting: str = "", state: str = "", server: str = "") -> Listed:
    """Keys and names that do not exist narrow it to nothing. Without `server` each row costs one step in an
    index.

    With it the rows are read by the server's own runs, each activation once, at its first run there: to look
    from each activation for a run would read a million of them to find that a new server has none."""
    rows = Activation.objects.select_related("setting", "started_by")
    if setting:
        # The id first: joined by key, PostgreSQL would not read the index in its order.
        rows = rows.filter(
            setting=LaunchSetting.objects.filter(key=setting).values_list("pk", flat=True).first() or 0
        )
    if state:
        rows = rows.filter(state=state)
    if not server:
        return Listed(rows.order_by("-started_at", "-id"), "started_at")
    place = Server.objects.filter(name=server).values_list("pk", flat=True).first() or 0
    rows = rows.filter(runs__server=place).annotate(
        began_there=F("runs__created_at"), epoch_there=F("runs__epoch")
    )
    before = Run.objects.filter(activation=OuterRef("pk"), server=place, epoch__lt=OuterRef("epoch_there"))
    return Listed(rows.filter(~Exists(before)).order_by("-began_there", "-id"), "began_there")


# -- the runs of open activations as lists need them: bare facts, thousands at a time ------------------------


_COLUMNS = (
    "activation_id", "server_id", "epoch", "wanted", "state", "connected", "problems", "blocked", "closed_at",
    "handled",
    "failed",
    "temporary",
)  # fmt: skip


class OpenRun(NamedTuple):
    """Named as in `Run`. Runs of one server share one `server`. A tuple is made four times as fast as a
    frozen dataclass, and there are thousands."""

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


# -- servers that interrupted an activation ------------------------------------------------------------------
# Such a server's run with the highest epoch is interrupted.


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


# -- why a run that is wanted is left out of what its server is sent -----------------------------------------


class NotSent(ValueError):
    """This run is not sent. Its row keeps the code, the page of the setting says it."""

    def __init__(self, because: Withheld) -> None:
        super().__init__(because.value)
        self.because = because


def why_not_sent(setting: LaunchSetting) -> Withheld | None:
    """Returns what the setting and its pool say of it; None where nothing keeps its runs from being sent."""
    if not setting.pool.allows(setting.agent):
        return Withheld.AGENT_NOT_ALLOWED
    if isinstance(setting.parameters, UnreadableJson):
        return Withheld.PARAMETERS_UNREADABLE
    if deeper_than(setting.parameters, DEEPEST):
        return Withheld.PARAMETERS_TOO_DEEP
    return None


def withheld_runs() -> QuerySet[Run]:
    """Returns those of every server, by setting: only runs that are wanted now."""
    runs = Run.objects.filter(
        wanted=True, closed_at=None, activation__state__in=OPEN_ACTIVATIONS, activation__ending=""
    )
    return runs.filter(activation__setting__enabled=True).exclude(withheld_because="")


def settings_not_allowed() -> list[LaunchSetting]:
    """Enabled ones whose pool does not allow their agent, by key: whether or not a run of them is wanted
    now."""
    listed = LaunchSetting.objects.filter(enabled=True, pool__allowed_agents__isnull=False)
    return [one for one in listed.select_related("pool").order_by("key") if not one.pool.allows(one.agent)]
