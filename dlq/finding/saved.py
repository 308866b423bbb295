"""Filters of dead letters under a name: one's own, and those that others share. Whoever uses one finds what they may
see themselves, nothing more."""

import unicodedata
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _

from agents.pages.visible import INVISIBLE
from contract.text import storable
from dlq import auditing
from dlq.finding.filters import PAGE_OWN, LetterFilter
from dlq.letters_for import found
from dlq.masking import Masks
from dlq.masks import everybodys_masks
from dlq.models import DeadLetter, SavedFilter

MOST = 200  # of one person
LONGEST_NAME, LONGEST_QUERY = 100, 4000


class FilterRefused(Exception):
    """Nothing was saved. `code` is a stable word: `no_name`, `exists`, `too_many`, `too_long`, `empty`, `bad_filter`,
    `masked`, `not_owner`."""

    def __init__(self, code: str, reason: str, what_to_do: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason, self.what_to_do = code, reason, what_to_do


def saved_for(user: Any) -> QuerySet[SavedFilter]:
    """Those that this person may use, by name; their own first."""
    return SavedFilter.objects.filter(Q(owner=user) | Q(shared=True)).select_related("owner").order_by("name", "pk")


def save(name: str, query: str, *, shared: bool = False, by: Any, now: datetime) -> SavedFilter:
    """Raises FilterRefused. Two at once under one name: one of them (a unique constraint)."""
    name, kept = _name(name), _query(query, by)
    _check_shared(kept, shared, by)
    if SavedFilter.objects.filter(owner=by).count() >= MOST:
        raise FilterRefused("too_many", _("You have %(n)s saved filters already.") % {"n": MOST}, _("Delete some."))
    saved = SavedFilter(owner=by, name=name, query=kept, shared=shared, created_at=now)
    _write(saved, "save_filter", now)
    return saved


def change(
    saved: SavedFilter,
    *,
    name: str | None = None,
    query: str | None = None,
    shared: bool | None = None,
    by: Any,
    now: datetime,
) -> SavedFilter:
    """What is None stays. Raises FilterRefused."""
    _check_owner(saved, by)
    if name is not None:
        saved.name = _name(name)
    if query is not None:
        saved.query = _query(query, by)
    if shared is not None:
        saved.shared = shared
    _check_shared(saved.query, saved.shared, by)
    _write(saved, "change_filter", now)
    return saved


def delete(saved: SavedFilter, *, by: Any, now: datetime) -> None:
    """Raises FilterRefused."""
    _check_owner(saved, by)
    with transaction.atomic():
        _told("delete_filter", saved, now)
        saved.delete()


def filter_part(query: QueryDict) -> QueryDict:
    """What of an address is a filter, without what is empty and without what holds anyway."""
    kept = query.copy()
    for name in list(kept):
        if name not in LetterFilter.base_filters or not any(kept.getlist(name)):
            del kept[name]
    if kept.getlist("state") == ["dead"]:
        del kept["state"]
    return kept


def _name(name: str) -> str:
    """One line of what can be seen."""
    words = "".join(" " if unicodedata.category(each) in INVISIBLE else each for each in storable(name))
    cleaned = " ".join(words.split())[:LONGEST_NAME]
    if not cleaned:
        raise FilterRefused("no_name", _("Give the filter a name."))
    return cleaned


def _query(query: str, by: Any) -> str:
    if len(query) > LONGEST_QUERY:
        raise FilterRefused("too_long", _("This filter is too long to be saved."))
    given = QueryDict(query.removeprefix("?"))
    wrong = [name for name in given if name not in LetterFilter.base_filters and name not in PAGE_OWN]
    kept = filter_part(given)
    if not kept and not wrong:
        raise FilterRefused("empty", _("There is no filter to be saved."), _("Choose something to look for first."))
    filters, _rows = found(given, by)
    if problem := filters.problem:
        raise FilterRefused("bad_filter", problem)
    return kept.urlencode()


def _check_shared(query: str, shared: bool, by: Any) -> None:
    """What somebody may look for and others may not is not told to them by a filter."""
    if not shared:
        return
    data = QueryDict(query)
    filters = LetterFilter(data, DeadLetter.objects.none(), user=by)
    masks: Masks = everybodys_masks()
    filters.form.masks = masks
    if not filters.is_valid():
        raise FilterRefused("masked", filters.problem, _("Keep it for yourself."))


def _check_owner(saved: SavedFilter, by: Any) -> None:
    if saved.owner_id != by.pk:
        reason = _("This filter is %(name)s's: only they change it.") % {"name": saved.owner.get_username()}
        auditing.record_refused("change_filter", by=by, target=f"filter:{saved.pk}", why=reason)
        raise FilterRefused("not_owner", reason, _("Save it under a name of your own."))


def _write(saved: SavedFilter, action: str, now: datetime) -> None:
    try:
        with transaction.atomic():
            saved.save()
            _told(action, saved, now)
    except IntegrityError as error:
        raise FilterRefused(
            "exists", _("You have a filter of this name already."), _("Choose another name.")
        ) from error


def _told(action: str, saved: SavedFilter, now: datetime) -> None:
    """Not what it looks for: that may be masked."""
    detail = {"name": saved.name, "shared": saved.shared}
    auditing.record(action, by=saved.owner, now=now, target=f"filter:{saved.pk}", detail=detail)
