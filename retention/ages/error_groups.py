"""Counts that nothing refers to any more: those of activations that the MA does not know, which no activation
takes with it, and kinds of failures that nobody met for as long and of which nobody wrote anything."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, Min, OuterRef, Q, QuerySet

from agents.models import Activation
from console.database.storage import raw_delete
from dlq.models import DeadLetter, KnownFault, LetterState, Note, Taking
from failures.error_groups.rollup import hold
from failures.models import (
    FailureDelta,
    FailureGroup,
    FailureProtocol,
    Fingerprint,
    FingerprintChange,
    FingerprintHour,
    FingerprintVersion,
    KnownError,
    RecoveredMessage,
)
from retention.ages.activations import referred_activations
from retention.ages.limits import before, some_at_a_time
from retention.batches import Chunks, TimeIsUp

GROUPS, KINDS = "groups", "fingerprints"
LOOKED_AT, STRETCH = 2000, 100_000


def old_groups(now: datetime, chunks: Chunks) -> None:
    """As old as activations that go. It keeps its place: the next step goes on from there. Raises
    TimeIsUp."""
    if (older := before(now, settings.MA_KEEP_ACTIVATIONS_DAYS)) is None:
        return
    # No index tells of it, so most runs ask one question of all and no more.
    oldest = FailureGroup.objects.aggregate(oldest=Min("last_at"))["oldest"]
    if oldest is None or oldest >= older:
        return
    claim = chunks.claim
    while (up_to := _stretch(claim.run.position)) is not None:
        if chunks.over:
            raise TimeIsUp
        while found := _following(claim.run.position, up_to, older):
            for part in some_at_a_time(_of_nobody(found, older), chunks):
                chunks.delete(GROUPS, partial(_delete_groups, part, older))
            claim.move(claim.run.part, found[-1][0])
        claim.move(claim.run.part, up_to)


def old_kinds(now: datetime, chunks: Chunks) -> None:
    """A kind that comes again after it went is a new one. Raises TimeIsUp."""
    if (older := before(now, settings.MA_KEEP_ACTIVATIONS_DAYS)) is None:
        return
    after = ""
    while found := list(
        _unmet(older).filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:LOOKED_AT]
    ):
        if chunks.over:
            raise TimeIsUp
        referred = referred_fingerprints(found)
        for part in some_at_a_time([pk for pk in found if pk not in referred], chunks):
            chunks.delete(KINDS, partial(_delete_kinds, part, older))
        after = found[-1]


Row = tuple[int, UUID, str]


def _stretch(after: int) -> int | None:
    """The key up to which the database looks for old ones in one question; None: there are no more."""
    keys = FailureGroup.objects.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)
    far: int | None = keys[STRETCH : STRETCH + 1].first()
    return far if far is not None else keys.last()


def _following(after: int, up_to: int, older: datetime) -> list[Row]:
    rows = FailureGroup.objects.filter(pk__gt=after, pk__lte=up_to, last_at__lt=older).order_by("pk")
    return list(rows.values_list("pk", "activation_uuid", "setting_key")[:LOOKED_AT])


def _of_nobody(old: Sequence[Row], older: datetime) -> list[int]:
    """Keys of those that are of an activation that the MA does not know and that nothing tells of."""
    activations = {activation for _, activation, _ in old}
    activations -= set(Activation.objects.filter(pk__in=activations).values_list("pk", flat=True))
    by_setting: dict[str, set[UUID]] = {}
    for _, activation, setting_key in old:
        if activation in activations:
            by_setting.setdefault(setting_key, set()).add(activation)
    for setting_key, of_setting in by_setting.items():
        activations -= referred_activations(setting_key, of_setting)
    candidates = [pk for pk, activation, _ in old if activation in activations]
    return list(_unreferred(candidates, older).values_list("pk", flat=True))


def _unreferred(groups: Sequence[int], older: datetime) -> QuerySet[FailureGroup]:
    rows = FailureGroup.objects.filter(pk__in=groups, last_at__lt=older).order_by()
    for model in (FailureProtocol, RecoveredMessage, FailureDelta):
        rows = rows.filter(
            ~Exists(model._default_manager.filter(activation_uuid=OuterRef("activation_uuid")))
        )
    return rows


def _delete_groups(groups: Sequence[int], older: datetime) -> int:
    hold()
    going = list(_unreferred(groups, older).values_list("pk", flat=True))
    return raw_delete(FailureGroup.objects.filter(pk__in=going))


def _unmet(older: datetime) -> QuerySet[Fingerprint]:
    """Returns those that belong to others too: a merged one is referred to."""
    rows = Fingerprint.objects.filter(recent_at__lt=older, received_at__lt=older, merged_into=None)
    of_kinds = (FailureGroup, FingerprintHour, FingerprintVersion, FailureDelta, FailureProtocol)
    for model in (*of_kinds, KnownError, FingerprintChange):
        rows = rows.filter(~Exists(model._default_manager.filter(fingerprint=OuterRef("pk"))))
    return rows.filter(~Q(Exists(Fingerprint.objects.filter(merged_into=OuterRef("pk")))))


def _delete_kinds(kinds: Sequence[str], older: datetime) -> int:
    hold()
    going = list(_unmet(older).filter(pk__in=kinds).order_by().values_list("pk", flat=True))
    return raw_delete(Fingerprint.objects.filter(pk__in=going))


def referred_fingerprints(fingerprints: Collection[str]) -> Collection[str]:
    """Returns those that letters which are dead now, or what people wrote beside letters, refer to."""
    dead = DeadLetter.objects.filter(state=LetterState.DEAD, fingerprint__in=fingerprints)
    found = set(dead.order_by().values_list("fingerprint", flat=True).distinct())
    for model in (Note, KnownFault, Taking):
        remarks = model._default_manager.filter(fingerprint__in=fingerprints).order_by()
        found.update(remarks.values_list("fingerprint", flat=True).distinct())
    return found
