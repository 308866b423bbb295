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

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from agents.models import LaunchSetting, Run, Server
from contract.messages import ReplayOutcome
from failures.models.spool import SetAside
from failures.records import Known, ReadRecord, RunKey, RunRecord, run_key


@dataclass(frozen=True, slots=True)
class Others:
    """What was looked up of records that are not verified. `runs`: other servers have them. `ran`: keys of
    settings of which this server ever had a run; `settings`: keys of those that exist."""

    runs: Collection[RunKey] = frozenset()
    ran: Collection[str] = frozenset()
    settings: Collection[str] = frozenset()
    has_lost: bool = False


def is_verified(content: RunRecord, known: Known) -> bool:
    of_setting = known.activations.get(content.run.activation) == content.run.setting
    return of_setting and run_key(content) in known.runs


def reason_to_set_aside(content: RunRecord, known: Known, others: Others) -> SetAside | None:
    """None: it is stored. Pure."""
    if others.has_lost or is_verified(content, known):
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
    readable: Iterable[ReadRecord], known: Known, server: Server, *, has_lost: bool
) -> dict[UUID, SetAside]:
    """{record: why}. Asks nothing where every record is verified, as nearly always."""
    doubtful = [(record.id, content) for record, content in readable if not is_verified(content, known)]
    if not doubtful:
        return {}
    others = _others([content for _, content in doubtful], known.activations, server, has_lost=has_lost)
    found = {pk: reason_to_set_aside(content, known, others) for pk, content in doubtful}
    return {pk: why for pk, why in found.items() if why is not None}


def _others(
    contents: Iterable[RunRecord], known: Mapping[UUID, str], server: Server, *, has_lost: bool
) -> Others:
    contents = list(contents)
    activations = {content.run.activation for content in contents if content.run.activation in known}
    runs = Run.objects.filter(activation__in=activations).exclude(server=server).order_by()
    keys = {content.run.setting for content in contents if isinstance(content, ReplayOutcome)}
    ran = Run.objects.filter(server=server, activation__setting__key__in=keys).order_by()
    settings = LaunchSetting.objects.filter(key__in=keys).order_by()
    return Others(
        settings=set(settings.values_list("key", flat=True)) if keys else frozenset(),
        runs=set(runs.values_list("activation", "epoch")) if activations else frozenset(),
        ran=set(ran.values_list("activation__setting__key", flat=True).distinct()) if keys else frozenset(),
        has_lost=has_lost,
    )
