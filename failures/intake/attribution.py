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

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

from agents.models import LaunchSetting, Run
from contract.messages import ReplayOutcome
from failures.intake.kinds.record_kind import BatchContext, RunKey, run_key
from failures.models.spool import SetAside
from failures.records import ReadRecord, RunRecord


@dataclass(frozen=True, slots=True)
class Others:
    """What was looked up of records that are not verified. `runs`: other servers have them. `ran`: keys of
    settings of which this server ever had a run; `settings`: keys of those that exist."""

    runs: Collection[RunKey] = frozenset()
    ran: Collection[str] = frozenset()
    settings: Collection[str] = frozenset()
    has_lost: bool = False


def reason_to_set_aside(content: RunRecord, known: BatchContext, others: Others) -> SetAside | None:
    """None: it is stored. Pure."""
    if others.has_lost or known.is_verified(content):
        return None
    had = any(activation == content.run.activation for activation, _ in known.runs)
    if run_key(content) in others.runs and not had:
        return SetAside.ANOTHER_SERVER
    # Of a setting that was removed its runs are gone, too: nobody can tell who ran it.
    known_setting = content.run.setting in others.settings
    if isinstance(content, ReplayOutcome) and known_setting and content.run.setting not in others.ran:
        return SetAside.NEVER_RAN
    return None


def to_set_aside(
    readable: Iterable[ReadRecord], known: BatchContext, *, has_lost: bool
) -> dict[UUID, SetAside]:
    """{record: why}. Asks nothing where every record is verified, as nearly always."""
    doubtful = [(record.id, content) for record, content in readable if not known.is_verified(content)]
    if not doubtful:
        return {}
    others = _others([content for _, content in doubtful], known, has_lost=has_lost)
    found = {pk: reason_to_set_aside(content, known, others) for pk, content in doubtful}
    return {pk: why for pk, why in found.items() if why is not None}


def _others(contents: Iterable[RunRecord], known: BatchContext, *, has_lost: bool) -> Others:
    contents = list(contents)
    activations = {
        content.run.activation for content in contents if content.run.activation in known.activations
    }
    runs = Run.objects.filter(activation__in=activations).exclude(server=known.server).order_by()
    keys = {content.run.setting for content in contents if isinstance(content, ReplayOutcome)}
    ran = Run.objects.filter(server=known.server, activation__setting__key__in=keys).order_by()
    settings = LaunchSetting.objects.filter(key__in=keys).order_by()
    return Others(
        settings=set(settings.values_list("key", flat=True)) if keys else frozenset(),
        runs=set(runs.values_list("activation", "epoch")) if activations else frozenset(),
        ran=set(ran.values_list("activation__setting__key", flat=True).distinct()) if keys else frozenset(),
        has_lost=has_lost,
    )
