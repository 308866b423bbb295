"""Refuses a start while something is frozen, and keeps the list of what was held."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.freezes.queries import frozen_now
from agents.freezes.rules import Frozen
from agents.models import Freeze, HeldKind, HeldStart
from console import hooks
from console.audit.log import account
from console.operations.refusals import Refused
from console.processes import once_per
from console.ui.amounts import instant

# Ended freezes with what they held, and what windows of a maintenance held.
KEPT = timedelta(days=90)
LOOKS_EVERY = timedelta(hours=1)


class FrozenStart(Refused):
    """Nothing new starts here now; what runs goes on."""

    def __init__(self, frozen: Frozen) -> None:
        self.frozen = frozen
        super().__init__("frozen", frozen.reason, _what_to_do(frozen), until=frozen.until)


def _what_to_do(frozen: Frozen) -> str:
    if frozen.until is None:
        return _("Try again after the freeze is lifted.")
    return _("Try again after %(until)s.") % {"until": instant(frozen.until)}


def freeze_refusal(pools: Iterable[int], now: datetime) -> FrozenStart | None:
    """Returns why nothing new starts in these pools now, or None. Read under the lock of the setting or the
    group, which a freeze waits for: what is not refused then began before the freeze."""
    frozen = frozen_now(now).of(pools)
    return FrozenStart(frozen) if frozen else None


@dataclass(frozen=True, slots=True)
class Held:
    """What was held, by the name of its target in the audit. `count` 0: it is held still, and counted
    already. `action` and `by_name`: of what somebody asked for."""

    kind: HeldKind
    target: str
    count: int = 1
    action: str = ""
    by_name: str = ""


def note_held(frozen: Frozen, held: Held, now: datetime) -> None:
    """Adds it to the list of what is held."""
    what: dict[str, Any] = {
        "freeze_id": frozen.freeze,
        "maintenance_id": frozen.maintenance,
        "since": frozen.since,
        "kind": held.kind,
        "target": held.target[:300],
        "action": held.action[:40],
        "by_name": held.by_name[:150],
    }
    rows = HeldStart.objects.filter(**what)
    if not rows.update(count=F("count") + held.count, last_at=now):
        rows.get_or_create(**what, defaults={"count": max(held.count, 1), "first_at": now, "last_at": now})


def _note_refused(error: Exception, action: str, by: Any, target: str) -> None:
    if isinstance(error, FrozenStart):
        name = by.get_username() if isinstance(by, User) else account()
        note_held(error.frozen, Held(HeldKind.PERSON, target, 1, action, name), timezone.now())


hooks.refusal_kept.implement(_note_refused)


def forget_held(now: datetime) -> int:
    """Returns how many freezes were deleted, with what they held."""
    if not once_per("forget freezes", LOOKS_EVERY, now):
        return 0
    HeldStart.objects.filter(maintenance__isnull=False, last_at__lt=now - KEPT).delete()
    over = Freeze.objects.filter(Q(lifted_at__lt=now - KEPT) | Q(lifted_at=None, ends_at__lt=now - KEPT))
    return over.delete()[0]
