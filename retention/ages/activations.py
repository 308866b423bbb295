"""Activations and runs, kept for a time of their own.

Never the last finished activation of a setting, by which retention goes; never one that goes on, of which
there are records, that a trip tells of, or that others refer to.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from agents.models import Activation, Interruption, LaunchSetting, Run, StateChange, Window
from console.database.storage import raw_delete
from contract.names import UNKNOWN, dead_letter_queue
from dlq.models import DeadLetter, LetterState
from dlq.models.dead_letter import BIN_QUEUE
from failures.error_groups.rollup import hold
from failures.models import FailureGroup, FailureProtocol, RecoveredMessage
from insights.archive.planning import archived_before
from retention.ages.limits import before, some_at_a_time
from retention.batches import Chunks
from retention.protocols.queries import last_finished_of

ACTIVATIONS, RUNS = "activations", "runs"
AT_ONCE = 500


def old_activations(now: datetime, chunks: Chunks) -> None:
    """With their runs and what the history tells of them alone. Raises TimeIsUp."""
    if (older := before(now, settings.MA_KEEP_ACTIVATIONS_DAYS)) is not None:
        older = min(older, *_safe(now, "activations", "runs"))
        _each(older, chunks, ACTIVATIONS, _delete_activations, Q())


def old_runs(now: datetime, chunks: Chunks) -> None:
    """The activation stays, with its state and how it finished. Raises TimeIsUp."""
    if (older := before(now, settings.MA_KEEP_RUNS_DAYS)) is not None:
        older = min(older, *_safe(now, "runs"))
        has_runs = Exists(Run.objects.filter(activation=OuterRef("pk")))
        _each(older, chunks, RUNS, _delete_runs, Q(has_runs))


def _safe(now: datetime, *kinds: str) -> list[datetime]:
    """An activation ends when its runs are closed, or later."""
    return [now, *(safe for kind in kinds if (safe := archived_before(kind, now)) is not None)]


def _each(
    older: datetime, chunks: Chunks, what: str, delete: Callable[[Sequence[UUID]], int], also: Q
) -> None:
    ended = Activation.objects.filter(also, setting=OuterRef("pk"), ended_at__isnull=False).order_by(
        "ended_at"
    )
    first = Subquery(ended.values("ended_at")[:1])
    # One question tells of all settings, most of which have nothing so old.
    for setting in list(LaunchSetting.objects.annotate(first=first).filter(first__lt=older).order_by("pk")):
        for some in _over(setting, older, also):
            for part in some_at_a_time(some, chunks):
                chunks.delete(what, partial(delete, part))


def _over(setting: LaunchSetting, older: datetime, also: Q) -> Iterable[list[UUID]]:
    """Those that ended before and that nobody needs; the oldest first, each looked at once."""
    last = last_finished_of(setting)
    ended = Activation.objects.filter(_unneeded(), also, setting=setting, ended_at__lt=older).order_by(
        "ended_at", "pk"
    )
    after: tuple[datetime, UUID] | None = None
    while True:
        following = ended.filter(_past(*after), ended_at__gte=after[0]) if after else ended
        found = list(following.values_list("ended_at", "pk")[:AT_ONCE])
        if not found:
            return
        after = (found[-1][0] or older, found[-1][1])
        pks = [pk for _, pk in found if last is None or pk != last.pk]
        referred = referred_activations(setting.key, pks)
        yield [pk for pk in pks if pk not in referred]


def _past(at: datetime, pk: UUID) -> Q:
    return Q(ended_at__gt=at) | Q(pk__gt=pk)


def _unneeded() -> Q:
    protocols = FailureProtocol.objects.filter(activation_uuid=OuterRef("pk"))
    recovered = RecoveredMessage.objects.filter(activation_uuid=OuterRef("pk"))
    return Q(~Exists(protocols), ~Exists(recovered), cleared=True, trips=None, ended_at__isnull=False)


def _delete_activations(pks: Sequence[UUID]) -> int:
    """What is still unneeded of them: a late record may have come since. With the counts of what failed in
    them. How many activations.

    Not through the ORM's collector: it would look for protocols by a column that has no index, to set
    nothing."""
    gone = list(_locked(pks))
    _delete_runs_of(gone)
    changes = StateChange.objects.filter(activation__in=gone)
    changes.filter(what="setting").update(activation=None)
    raw_delete(changes)
    Window.objects.filter(activation__in=gone).update(activation=None)
    if gone:
        hold()
    FailureGroup.objects.filter(activation_uuid__in=gone).delete()
    return raw_delete(Activation.objects.filter(pk__in=gone))


def _delete_runs(pks: Sequence[UUID]) -> int:
    return _delete_runs_of(list(_locked(pks)))


def _locked(pks: Sequence[UUID]) -> QuerySet[Activation, UUID]:
    rows = (
        Activation.objects.select_for_update(of=("self",))
        .filter(pk__in=pks)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    still = Activation.objects.filter(_unneeded(), pk__in=list(rows))
    return still.order_by().values_list("pk", flat=True)


def _delete_runs_of(activations: Sequence[UUID]) -> int:
    runs = Run.objects.filter(activation__in=activations)
    Interruption.objects.filter(run__in=runs).update(run=None)
    return raw_delete(runs)


def referred_activations(setting_key: str, activations: Collection[UUID]) -> set[UUID]:
    """Returns those that letters which are dead now refer to."""
    queues = [dead_letter_queue(setting_key), dead_letter_queue(UNKNOWN), BIN_QUEUE]
    dead = DeadLetter.objects.filter(
        queue__in=queues, state=LetterState.DEAD, activation_uuid__in=activations
    )
    found = dead.order_by().values_list("activation_uuid", flat=True).distinct()
    return {pk for pk in found if pk is not None}
