"""A fingerprint split by a person: what fails in one setting is a kind of its own, now and from now on.

Protocols, groups and hours keep their fingerprint; the split is a rule over them (fingerprint and setting),
so that it is undone by taking the rule back. By setting and by nothing else: hours and groups are counted by
setting, so both halves of every figure are sums of what was counted. Text and version are kept of the latest
failure of a group only: by them the past could not be divided.

A part that is joined again is merged into what it was split off from, and no rule any more.
"""

import hashlib
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, Min, Sum
from django.utils.translation import gettext as _

from failures.error_groups.known_errors import known_of
from failures.error_groups.merges import hand_on_what_is_known, members_of, never_met, note_act, refused
from failures.error_groups.queries import Pair, owners_of
from failures.error_groups.regressions import refresh_return
from failures.error_groups.rollup import hold
from failures.models import (
    FailureGroup,
    Fingerprint,
    FingerprintAct,
    FingerprintHour,
    KnownError,
)

MOST_PARTS = 50


def part_off(one: str, setting: str, *, by: Any, now: datetime) -> str:
    """What `one` is in that setting stands for itself; answers its key. Raises Refused."""
    with transaction.atomic():
        # What is folded from here on finds the rule, what was folded before is in the groups.
        hold()
        whole = _whole(one)
        key = key_of(one, setting)
        row = Fingerprint.objects.select_for_update().filter(pk=key).first()
        if row is not None and row.merged_into_id is None:
            raise refused(_("Cannot split off: this setting is already split off."))
        if Fingerprint.objects.filter(part_of=one, merged_into=None).count() >= MOST_PARTS:
            raise refused(
                _("Cannot split off: at most %(most)d settings can be split off. Rejoin one of them first.")
                % {"most": MOST_PARTS}
            )
        counted = _counted(whole, setting)
        Fingerprint.objects.update_or_create(pk=key, defaults=counted)
        note_act(one, FingerprintAct.SPLIT, {"off": key, "setting": setting}, by, now)
        note_act(key, FingerprintAct.SPLIT, {"from": one, "setting": setting}, by, now)
        hand_on_what_is_known(one, key)
        refresh_return(key, [key])
        refresh_return(one, members_of(one))
    return key


def join(part: str, *, by: Any, now: datetime) -> str:
    """It is no kind of its own any more; answers what it belongs to again. Raises Refused."""
    with transaction.atomic():
        hold()
        row = Fingerprint.objects.select_for_update().filter(pk=part, merged_into=None).first()
        if row is None or row.part_of_id is None:
            raise refused(_("Cannot rejoin: the error group is not split off."))
        # Its count is in that of the whole.
        Fingerprint.objects.filter(pk=part).update(merged_into=row.part_of_id, count=0)
        refresh_return(row.part_of_id, members_of(row.part_of_id))
        note_act(row.part_of_id, FingerprintAct.MERGED, {"with": part, "setting": row.part_setting}, by, now)
        note_act(part, FingerprintAct.MERGED, {"into": row.part_of_id, "setting": row.part_setting}, by, now)
    return row.part_of_id


def key_of(one: str, setting: str) -> str:
    return "part:" + hashlib.sha256(f"{one}\0{setting}".encode()).hexdigest()[:32]


def known_in(pairs: Collection[Pair]) -> Mapping[Pair, KnownError]:
    """Returns what is known of (fingerprint, setting)."""
    owners = owners_of({fingerprint for fingerprint, _ in pairs})
    of = {pair: owners.get(pair, pair[0]) for pair in pairs}
    known = known_of(set(of.values()))
    return {pair: known[owner] for pair, owner in of.items() if owner in known}


def _whole(one: str) -> Fingerprint:
    row = Fingerprint.objects.select_for_update().filter(pk=one).first()
    if row is None:
        raise never_met()
    if row.part_of_id is not None or row.merged_into_id is not None:
        raise refused(
            _(
                "Cannot split off the setting: this error group is itself split off or merged. Split "
                "the setting off from the main group."
            )
        )
    return row


def _counted(whole: Fingerprint, setting: str) -> dict[str, Any]:
    """Returns what the groups of that setting hold: those of activations that were deleted stay with the
    whole."""
    groups = FailureGroup.objects.filter(fingerprint=whole.pk, setting_key=setting)
    sums = groups.aggregate(count=Sum("count"), first=Min("first_at"), last=Max("last_at"))
    latest = groups.order_by("-last_at").first()
    hours = FingerprintHour.objects.filter(fingerprint=whole.pk, setting_key=setting)
    if latest is None and not hours.exists():
        raise refused(_("Cannot split off the setting: the stored counts include none of its failures."))
    return {
        "part_of_id": whole.pk, "part_setting": setting, "merged_into": None,
        "exception_type": whole.exception_type,
        "place": whole.place, "headline": latest.headline if latest else whole.headline,
        "latest": latest.latest if latest else whole.latest, "count": sums["count"] or 0,
        "first_at": sums["first"] or whole.first_at, "last_at": sums["last"] or whole.last_at,
        "recent_at": sums["last"] or whole.last_at, "received_at": whole.received_at,
    }  # fmt: skip
