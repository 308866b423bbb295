"""Whose run a record speaks of. A token proves the server, not that this server ever had the run.

Three answers. *Verified*: this server has a row of that run. *Set aside*: the row of that run is another
server's, or the outcome of a replay comes from a server that never ran its setting. It is kept as refused
with a code, and the spool goes on. *Unverified*: nobody here can tell, as after a database was put back from
a copy. It is stored and marked, and settles no replay.

A run moves between servers by a row of its own for each: what a server that lost it reports late is verified.
Epochs begin again after a database was put back, so the row of a lost run may be another server's by now: of
a spool that has lost something nothing is set aside. A hostile server may claim that, and gains a mark of
doubt by it.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from agents.models import LaunchSetting, Run
from failures.intake.kinds.record_kind import BatchContext, Item, RunKey, run_key
from failures.models.spool import SetAside


def to_set_aside(doubtful: Sequence[Item[Any]], batch: BatchContext) -> dict[UUID, SetAside]:
    """{record: why} of records that are not verified; what is not among them is stored."""
    elsewhere, never_ran = _runs_of_others(doubtful, batch), _settings_never_run(doubtful, batch)
    found: dict[UUID, SetAside] = {}
    for item in doubtful:
        if run_key(item.content) in elsewhere:
            found[item.record.id] = SetAside.ANOTHER_SERVER
        elif item.kind.needs_own_run and item.content.run.setting in never_ran:
            found[item.record.id] = SetAside.NEVER_RAN
    return found


def _runs_of_others(doubtful: Sequence[Item[Any]], batch: BatchContext) -> set[RunKey]:
    """Runs of activations of which this server never had one."""
    had = {activation for activation, _ in batch.runs}
    activations = {item.content.run.activation for item in doubtful} & batch.activations.keys() - had
    runs = Run.objects.filter(activation__in=activations).exclude(server=batch.server).order_by()
    return set(runs.values_list("activation", "epoch")) if activations else set()


def _settings_never_run(doubtful: Sequence[Item[Any]], batch: BatchContext) -> set[str]:
    """Not those that were removed: their runs are gone, too, and nobody can tell who ran them."""
    keys = {item.content.run.setting for item in doubtful if item.kind.needs_own_run}
    if not keys:
        return set()
    settings = LaunchSetting.objects.filter(key__in=keys).order_by()
    ran = Run.objects.filter(server=batch.server, activation__setting__key__in=keys).order_by()
    of_runs = ran.values_list("activation__setting__key", flat=True).distinct()
    return set(settings.values_list("key", flat=True)) - set(of_runs)
