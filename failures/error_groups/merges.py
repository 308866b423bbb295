"""Two fingerprints that people know to be one, and apart again. Counts stay where they are: nothing is lost
by either.

A fingerprint is merged into one that is itself merged into none: then each has at most one head, and two
people who merge at once cannot make a circle (the rows are locked in the order of their keys).
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from console.operations.refusals import Refused
from failures.error_groups.regressions import refresh_return
from failures.error_groups.rollup import hold
from failures.models import FailureGroup, Fingerprint, FingerprintAct, FingerprintChange, KnownError

MOST_MERGED = 200


def merge(one: str, into: str, *, by: Any, now: datetime) -> None:
    """`one`, with what was merged into it, becomes part of `into`. Raises Refused."""
    if one == into:
        raise refused(_("Cannot merge a group with itself. Enter the fingerprint of another group."))
    with transaction.atomic():
        hold()
        rows = {
            row.pk: row
            for row in Fingerprint.objects.select_for_update().filter(pk__in=[one, into]).order_by("pk")
        }
        if len(rows) < 2:
            raise never_met()
        if rows[one].part_of_id or rows[into].part_of_id:
            raise refused(
                _(
                    "Cannot merge: one of the error groups contains a split-off setting. Rejoin that "
                    "setting instead."
                )
            )
        if rows[one].merged_into_id or rows[into].merged_into_id:
            raise refused(
                _(
                    "Cannot merge: the error group is already merged. Split it off first, or merge with "
                    "its main group."
                )
            )
        if Fingerprint.objects.filter(merged_into__in=[one, into]).count() >= MOST_MERGED:
            raise refused(
                _("Cannot merge: at most %(most)d error groups can be merged into one. Split one off first.")
                % {"most": MOST_MERGED}
            )
        moved = sorted(Fingerprint.objects.filter(merged_into=one).values_list("pk", flat=True))
        Fingerprint.objects.filter(merged_into=one).update(merged_into=into)
        Fingerprint.objects.filter(pk=one).update(merged_into=into)
        _refresh(into)
        note_act(into, FingerprintAct.MERGED, {"with": one}, by, now)
        note_act(one, FingerprintAct.MERGED, {"into": into, "and": moved}, by, now)
        for each in moved:
            note_act(each, FingerprintAct.MERGED, {"into": into}, by, now)
        hand_on_what_is_known(one, into)
        refresh_return(into, members_of(into))


def split(one: str, *, of: str, by: Any, now: datetime) -> None:
    """`one`, merged into `of`, stands for itself again, with those that came along with it. Raises
    Refused."""
    with transaction.atomic():
        hold()
        row = Fingerprint.objects.select_for_update().filter(pk=one).first()
        if row is None or row.merged_into_id != of or row.part_of_id is not None:
            raise refused(_("Cannot split off: the error group is not merged."))
        Fingerprint.objects.filter(pk=one).update(merged_into=None)
        came_along = _came_along(one, of)
        Fingerprint.objects.filter(pk__in=came_along).update(merged_into=one)
        for head in (of, one):
            _refresh(head)
            refresh_return(head, members_of(head))
        note_act(of, FingerprintAct.SPLIT, {"off": one}, by, now)
        for each in (one, *came_along):
            note_act(each, FingerprintAct.SPLIT, {"from": of}, by, now)


def heads_of(fingerprints: Collection[str]) -> Mapping[str, str]:
    """Returns by fingerprint the one it belongs to, else itself. Those that nobody has folded yet are their
    own."""
    merged = Fingerprint.objects.filter(pk__in=set(fingerprints), merged_into__isnull=False)
    known = dict(merged.values_list("pk", "merged_into_id"))
    return {each: known.get(each) or each for each in fingerprints}


def members_of(head: str) -> list[str]:
    """It and those merged into it. A part that was joined again is counted with it anyway."""
    return [
        head,
        *Fingerprint.objects.filter(merged_into=head, part_of=None)
        .order_by("pk")
        .values_list("pk", flat=True),
    ]


def in_setting(rows: QuerySet[Fingerprint], key: str) -> QuerySet[Fingerprint]:
    """Those that occur in a setting, themselves or through what was merged into them. Two looks into indexes
    for each row: an OR within one subquery would read all groups of the setting for each."""
    groups = FailureGroup.objects.filter(fingerprint=OuterRef("fingerprint"), setting_key=key)
    merged = Fingerprint.objects.filter(Exists(groups), merged_into=OuterRef("pk"))
    return rows.filter(Q(Exists(groups)) | Exists(merged) | Q(part_setting=key))


def _came_along(one: str, of: str) -> list[str]:
    """Returns what was merged into `one` when it was merged into `of`, and still is there."""
    merges = FingerprintChange.objects.filter(fingerprint=one, what=FingerprintAct.MERGED, detail__into=of)
    latest = merges.order_by("-id").first()
    moved = latest.detail.get("and", []) if latest else []
    return list(
        Fingerprint.objects.filter(pk__in=moved, merged_into=of).order_by("pk").values_list("pk", flat=True)
    )


def hand_on_what_is_known(one: str, to: str) -> None:
    """Copies what is known of `one` to `to` where nobody has written anything of it; from here on each has
    its own."""
    entry = KnownError.objects.filter(pk=one).first()
    if entry is not None and not KnownError.objects.filter(pk=to).exists():
        entry.pk = entry.fingerprint_id = to
        entry.save(force_insert=True)


def _refresh(head: str) -> None:
    """`recent_at`, from the rows themselves."""
    recent = Fingerprint.objects.filter(pk__in=members_of(head)).aggregate(recent=Max("last_at"))["recent"]
    Fingerprint.objects.filter(pk=head).update(recent_at=recent)


def refused(why: str) -> Refused:
    """`why` is for the person who asked, in their language."""
    return Refused("refused", why, _("Refresh the error group page and try again."))


def never_met() -> Refused:
    return refused(_("Unknown fingerprint: copy the fingerprint from the error group page."))


def note_act(fingerprint: str, what: FingerprintAct, detail: dict[str, Any], by: Any, now: datetime) -> None:
    """Notes it in the history that its page shows. `by`: None is the command line."""
    name = by.get_username() if by else ""
    FingerprintChange.objects.create(
        fingerprint_id=fingerprint, what=what, detail=detail, by=by, by_name=name, at=now
    )
