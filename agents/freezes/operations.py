"""Describes what people do about new starts: freeze and unfreeze the installation or one pool.

A freeze that is asked for again gets another end and another reason; its list of what it held goes on. It
takes the locks of every group and setting that it holds before it is committed, in the order of all who lock
several: whoever is starting something ends before it, and who comes later sees it. Killed before the commit
nothing is frozen; after it everything is.
"""

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agents.freezes.queries import frozen_now, open_until
from agents.models import Freeze, LaunchSetting, MaintenanceWindow, Pool, ScheduledGroup, SiteIdentity
from agents.models.freeze import scope_of
from agents.models.site import ONLY
from console.audit.log import account
from console.operations.inputs import REASON, REASON_NEEDED, Until
from console.operations.operation import (
    UNCHANGED,
    Act,
    Done,
    ModelPermission,
    Operation,
    Question,
    Resource,
)
from console.operations.refusals import Refused, WronglyAsked
from console.ui.amounts import number
from console.ui.page import Text

VIEW = "agents.view_freeze"
MAY_FREEZE = ModelPermission("agents.can_freeze", _("Can freeze and unfreeze starts"))


def sites() -> Any:
    """The one row, also where nobody has asked for it yet."""
    SiteIdentity.objects.get_or_create(pk=ONLY)
    return SiteIdentity.objects.order_by("pk")


SITE = Resource(
    name="site",
    rows=sites,
    key="pk",
    route="site/<int:pk>/",
    view=VIEW,
    list_page="freezes",
    title=_("Freezes"),
    label=lambda site: _("Whole installation"),
)
POOLS = Resource(
    name="pool",
    rows=Pool.objects.all,
    key="name",
    route="pools/<slug:name>/",
    view=VIEW,
    list_page="freezes",
    title=_("Freezes"),
)


class _Freezes(Operation[Any]):
    """What freezes a scope. A subclass says which pool, or None for the installation."""

    icon, tone, permission = "pause", "danger", MAY_FREEZE
    inputs = {"reason": REASON_NEEDED, "until": Until()}

    def pool(self, obj: Any) -> Pool | None:
        raise NotImplementedError

    def offered(self, obj: Any) -> bool:
        return True

    def question(self, obj: Any, by: Any, **named: Any) -> Question:
        pool = self.pool(obj)
        title = (
            gettext("Freeze new starts in the pool %(name)s?") % {"name": pool.name}
            if pool
            else gettext("Freeze new starts in the whole installation?")
        )
        texts: list[Text] = [
            _(
                "Nothing new starts. Settings and groups cannot be enabled or run, and replays cannot "
                "be started. Scheduled runs are held. Group runs do not move to the next member."
            ),
            _("Whatever is already running continues. Failover to another server still works."),
            _settings_held(pool),
        ]
        if _open_freeze(pool, None) is not None:
            texts.append(_("A freeze is already in effect. Its reason and end time will be replaced."))
        return Question(title, texts)

    def run(self, obj: Any, act: Act, *, until: datetime | None, **inputs: Any) -> Done:
        frozen = freeze(self.pool(obj), act, until)
        return Done(gettext("New starts are frozen.") if act.is_recorded else UNCHANGED, frozen)


class _Unfreezes(Operation[Any]):
    icon, permission = "play", MAY_FREEZE
    inputs = {"reason": REASON}

    def pool(self, obj: Any) -> Pool | None:
        raise NotImplementedError

    def question(self, obj: Any, by: Any, **named: Any) -> Question:
        pool = self.pool(obj)
        title = (
            gettext("Unfreeze the pool %(name)s?") % {"name": pool.name}
            if pool
            else gettext("Unfreeze the whole installation?")
        )
        texts = [
            _(
                "Held scheduled runs start once or are skipped, depending on the schedule. Group runs "
                "continue within seconds. Settings whose pause has ended are enabled again."
            ),
            _("An open maintenance window ends too. The next one opens as planned."),
        ]
        return Question(title, texts)

    def run(self, obj: Any, act: Act, **inputs: Any) -> Done:
        unfreeze(self.pool(obj), act)
        return Done(gettext("New starts are allowed again.") if act.is_recorded else UNCHANGED)


class FreezeSite(_Freezes):
    """Freezes new starts in the whole installation, until `until` or until it is unfrozen. If it is frozen
    already, the reason and the end time change."""

    code, label, on = "site.freeze", _("Freeze"), SITE

    def pool(self, obj: SiteIdentity) -> None:
        return None


class UnfreezeSite(_Unfreezes):
    """Ends the freeze of the whole installation, and an open maintenance window of it. No effect if there is
    neither."""

    code, label, on = "site.unfreeze", _("Unfreeze"), SITE

    def pool(self, obj: SiteIdentity) -> None:
        return None

    def offered(self, obj: SiteIdentity) -> bool:
        return frozen_now(timezone.now()).only(None) is not None


class FreezePool(_Freezes):
    """Freezes new starts in one pool, until `until` or until it is unfrozen. If it is frozen already, the
    reason and the end time change."""

    code, label, on = "pool.freeze", _("Freeze"), POOLS

    def pool(self, obj: Pool) -> Pool:
        return obj


class UnfreezePool(_Unfreezes):
    """Ends the freeze of one pool, and an open maintenance window of it. No effect if there is neither. A
    freeze of the whole installation stays."""

    code, label, on = "pool.unfreeze", _("Unfreeze"), POOLS

    def pool(self, obj: Pool) -> Pool:
        return obj

    def offered(self, obj: Pool) -> bool:
        return frozen_now(timezone.now()).only(obj.pk) is not None


def freeze(pool: Pool | None, act: Act, until: datetime | None) -> Freeze:
    """Returns what stands then. Raises Refused."""
    if not act.reason.strip():
        raise WronglyAsked(
            "reason_needed",
            gettext("The freeze was not started: no reason was given."),
            gettext("Enter a reason."),
        )
    if until is not None and until <= act.now:
        raise Refused(
            "until_is_past",
            gettext("The end time of the freeze is invalid: it is in the past."),
            gettext("Choose a later time."),
        )
    with transaction.atomic():
        _lock_scope(pool)
        scope = Freeze.objects.filter(scope=scope_of(pool.pk if pool else None), lifted_at=None)
        scope.filter(ends_at__lte=act.now).update(lifted_at=F("ends_at"))
        person = act.by if isinstance(act.by, User) else None
        values = {
            "by": person,
            "by_name": (person.get_username() if person else account())[:150],
            "reason": act.reason,
            "ends_at": until,
        }
        stood = scope.first()
        if stood is None:
            stood = Freeze.objects.create(
                scope=scope_of(pool.pk if pool else None), pool=pool, at=act.now, **values
            )
            act.record()
        elif (stood.reason, stood.ends_at) != (act.reason, until):
            scope.update(**values)
            stood.refresh_from_db()
            act.record()
        _wait_for_starts(pool)
    return stood


def unfreeze(pool: Pool | None, act: Act) -> None:
    """Of several at once one ends what holds the scope, and has the entry: exactly one row changes."""
    with transaction.atomic():
        row = _open_freeze(pool, act.now)
        lifted = 0
        if row is not None:
            person = act.by if isinstance(act.by, User) else None
            open_ones = Freeze.objects.filter(pk=row.pk, lifted_at=None)
            lifted = open_ones.update(lifted_at=act.now, lifted_by=person)
        windows = MaintenanceWindow.objects.filter(pool=pool).select_related("pool")
        for window in windows:
            if open_until(window, act.now) is not None:
                unchanged = MaintenanceWindow.objects.filter(pk=window.pk, lifted_at=window.lifted_at)
                lifted += unchanged.update(lifted_at=act.now)
        if lifted:
            act.record()


def _open_freeze(pool: Pool | None, now: datetime | None) -> Freeze | None:
    """Returns the one that stands at `now`; None: now."""
    now = now or timezone.now()
    row = Freeze.objects.filter(scope=scope_of(pool.pk if pool else None), lifted_at=None).first()
    return row if row is not None and (row.ends_at is None or now < row.ends_at) else None


def _settings_held(pool: Pool | None) -> str:
    settings = LaunchSetting.objects.filter(pool=pool) if pool else LaunchSetting.objects.all()
    count = settings.count()
    text = ngettext("The freeze applies to %(n)s setting.", "The freeze applies to %(n)s settings.", count)
    return text % {"n": number(count)}


def _lock_scope(pool: Pool | None) -> None:
    """Lets two that freeze the same come one after the other."""
    if pool is not None:
        Pool.objects.select_for_update(no_key=True).get(pk=pool.pk)
    else:
        SiteIdentity.objects.get_or_create(pk=ONLY)
        SiteIdentity.objects.select_for_update(no_key=True).get(pk=ONLY)


def _wait_for_starts(pool: Pool | None) -> None:
    """Groups before settings, as everybody locks them."""
    groups, settings = ScheduledGroup.objects.order_by("pk"), LaunchSetting.objects.order_by("pk")
    if pool is not None:
        held = LaunchSetting.objects.filter(pool=pool)
        groups = groups.filter(pk__in=held.values("membership__group"))
        settings = settings.filter(pool=pool)
    list(groups.select_for_update(no_key=True).values_list("pk", flat=True))
    list(settings.select_for_update(no_key=True).values_list("pk", flat=True))
