"""The pages of freezes: what holds new starts now, in each scope, with what it held; maintenance windows; and
the note above every page while something is frozen."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from agents.freezes.operations import POOLS, SITE, FreezePool, FreezeSite, UnfreezePool, UnfreezeSite
from agents.freezes.queries import FrozenScopes, frozen_now, next_opening, open_until
from agents.freezes.rules import Frozen, stands
from agents.models import Freeze, HeldKind, HeldStart, MaintenanceWindow, Pool, SiteIdentity
from agents.models.freeze import scope_of
from agents.models.site import ONLY
from agents.schedules.text import crontab_in_words
from console.audit import text as words
from console.lists.keyset import number_in
from console.operations.web import operation_buttons
from console.ui.page import Button, Panel, StateLabel, Text, link, link_to, needs, page

VIEW = "agents.view_freeze"
# Freezes of a scope that its page lists, and held starts of one.
PAST, HELD = 20, 200
FROZEN = StateLabel(_("frozen"), "warn", "pause")
MAINTAINED = StateLabel(_("maintenance window open"), "warn", "pause")
FREE = StateLabel(_("not frozen"), "ok", "ok")
OVER = StateLabel(_("ended"), "off", "ok")


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope with what holds just it."""

    name: Text
    url: str
    frozen: Frozen | None
    state: StateLabel
    buttons: Sequence[Button]


@dataclass(frozen=True, slots=True)
class MaintenanceRow:
    window: MaintenanceWindow
    words: str
    open_until: datetime | None
    next_at: datetime | None

    @property
    def length(self) -> timedelta:
        return timedelta(minutes=self.window.minutes)


@dataclass(frozen=True, slots=True)
class HeldRow:
    held: HeldStart
    what: Text
    name: str
    url: str


@dataclass(frozen=True, slots=True)
class FreezeRow:
    freeze: Freeze
    state: StateLabel
    over_at: datetime | None
    url: str
    here: bool


@dataclass(frozen=True, slots=True)
class BannerRow:
    """`url`: of the list of what it held; empty for who may not see it."""

    frozen: Frozen
    url: str


def state_of(frozen: Frozen | None) -> StateLabel:
    if frozen is None:
        return FREE
    return FROZEN if frozen.maintenance is None else MAINTAINED


@require_safe
@needs(VIEW)
def freeze_list(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()
    found, user = frozen_now(now), request.user
    return page(
        request,
        "agents/freezes.html",
        title=_("Freezes"),
        section="freezes",
        rows=[_site_row(found, user), *(_pool_row(pool, found, user) for pool in Pool.objects.all())],
        windows=maintenance_rows(MaintenanceWindow.objects.select_related("pool"), now),
        may_add=user.has_perm("agents.add_maintenancewindow"),
        may_change=user.has_perm("agents.change_maintenancewindow"),
        may_delete=user.has_perm("agents.delete_maintenancewindow"),
    )


@require_safe
@needs(VIEW)
def site_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    if pk != ONLY:
        raise Http404
    return _scope_page(request, None, _site_row(frozen_now(timezone.now()), request.user))


@require_safe
@needs(VIEW)
def pool_page(request: HttpRequest, name: str) -> HttpResponseBase:
    pool = get_object_or_404(Pool, name=name)
    return _scope_page(request, pool, _pool_row(pool, frozen_now(timezone.now()), request.user))


def _scope_page(request: HttpRequest, pool: Pool | None, row: ScopeRow) -> HttpResponseBase:
    now = timezone.now()
    freezes = list(
        Freeze.objects.filter(scope=scope_of(pool.pk if pool else None)).select_related("lifted_by")[:PAST]
    )
    wanted = number_in(request.GET.get("freeze", ""))
    chosen = next((each for each in freezes if each.pk == wanted), None)
    held = HeldStart.objects.filter(freeze=chosen) if chosen else _held_now(row.frozen)
    windows = MaintenanceWindow.objects.filter(pool=pool).select_related("pool")
    return page(
        request,
        "agents/freeze.html",
        title=row.name,
        section="freezes",
        crumbs=[(_("Freezes"), link("freezes"))],
        row=row,
        pool=pool,
        chosen=chosen,
        held=[_held_row(each) for each in held[:HELD]],
        freezes=[_freeze_row(each, row.url, chosen, now) for each in freezes],
        windows=maintenance_rows(windows, now),
        may_change=request.user.has_perm("agents.change_maintenancewindow"),
        may_delete=request.user.has_perm("agents.delete_maintenancewindow"),
    )


def _held_now(frozen: Frozen | None) -> Any:
    if frozen is None:
        return HeldStart.objects.none()
    return HeldStart.objects.filter(freeze=frozen.freeze, maintenance=frozen.maintenance, since=frozen.since)


def _site_row(found: FrozenScopes, user: Any) -> ScopeRow:
    site = SiteIdentity(pk=ONLY)
    frozen = found.only(None)
    buttons = operation_buttons(user, site, UnfreezeSite, FreezeSite)
    return ScopeRow(gettext("Whole installation"), SITE.url(site), frozen, state_of(frozen), buttons)


def _pool_row(pool: Pool, found: FrozenScopes, user: Any) -> ScopeRow:
    frozen = found.only(pool.pk)
    buttons = operation_buttons(user, pool, UnfreezePool, FreezePool)
    return ScopeRow(pool.name, POOLS.url(pool), frozen, state_of(frozen), buttons)


def maintenance_rows(windows: Any, now: datetime) -> list[MaintenanceRow]:
    """The one that opens next comes first."""
    rows = [
        MaintenanceRow(each, _words(each), open_until(each, now), next_opening(each, now)) for each in windows
    ]
    return sorted(rows, key=lambda row: (row.open_until is None, row.next_at is None, row.next_at or now))


def _words(window: MaintenanceWindow) -> str:
    try:
        return crontab_in_words(window.crontab, window.time_zone)
    except ValueError:  # stored by hand
        return str(window)


def _held_row(held: HeldStart) -> HeldRow:
    kind, _colon, key = held.target.partition(":")
    target = words.PAGES.get(kind)
    url = link_to(target.name, key, target.query) if target and key and not target.field else ""
    what = words.action_words(held.action) if held.action else HeldKind(held.kind).label
    return HeldRow(held, what, key or held.target, url)


def _freeze_row(freeze: Freeze, url: str, chosen: Freeze | None, now: datetime) -> FreezeRow:
    going_on = stands(freeze.lifted_at, freeze.ends_at, now)
    over_at = None if going_on else freeze.lifted_at or freeze.ends_at
    state = FROZEN if going_on else OVER
    return FreezeRow(freeze, state, over_at, f"{url}?freeze={freeze.pk}", freeze == chosen)


def banner(request: HttpRequest, _shown: Any) -> Panel | None:
    """Says above every page what is frozen, by whom, why and until when."""
    found = frozen_now(timezone.now()).found
    if not found:
        return None
    sees = request.user.has_perm(VIEW)
    rows = [BannerRow(each, _url_of(each) if sees else "") for each in found]
    return {"title": gettext("Freezes"), "template": "agents/freeze_banner.html", "context": {"rows": rows}}


def _url_of(frozen: Frozen) -> str:
    return link("site", ONLY) if frozen.pool is None else link("pool", frozen.pool_name)
