"""Filters of a long list under a name: one's own, and those that others share. Whoever uses one finds what
they may see themselves, nothing more."""

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _

from console.audit.log import mark_kept, record, record_refused
from console.filters import filter_words
from console.saved_filters.models import SavedFilter
from console.ui.text import INVISIBLE
from contract.text import storable

MOST = 200  # of one person in one list
LONGEST_NAME, LONGEST_QUERY = 100, 4000


class FilterRefused(Exception):
    """Nothing was saved. `code` is a stable word: `no_name`, `exists`, `too_many`, `too_long`, `empty`,
    `bad_filter`, `masked`, `not_owner`."""

    def __init__(self, code: str, reason: str, what_to_do: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason, self.what_to_do = code, reason, what_to_do


class SavedFilters(ABC):
    """Those of one list. `word` names it in their rows; `holds_anyway` is what it shows where nothing else is
    asked for."""

    word: ClassVar[str]
    holds_anyway: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def filter_part(self, query: QueryDict) -> QueryDict:
        """What of an address is a filter, without what is empty and what holds anyway."""

    @abstractmethod
    def checked(self, query: QueryDict, by: Any) -> Any:
        """The list's filter with its `form` and its `problem`, as this person may use it."""

    @abstractmethod
    def url_of(self, saved: SavedFilter) -> str:
        """Where the list shows what it finds."""

    def why_not_shared(self, query: str, by: Any) -> str:
        """Why it is not for everybody; empty: it is."""
        return ""

    def usable(self, user: Any) -> QuerySet[SavedFilter]:
        """Those that this person may use, by name."""
        mine = SavedFilter.objects.filter(Q(owner=user) | Q(shared=True), list=self.word)
        return mine.select_related("owner").order_by("name", "pk")

    def words(self, saved: SavedFilter, user: Any) -> tuple[list[tuple[str, str]], str]:
        """Label and value of each field that is set; why it finds nothing any more, empty where it does."""
        filters = self.checked(QueryDict(saved.query), user)
        problem: str = filters.problem
        return [] if problem else filter_words(filters.form, self.holds_anyway), problem

    def save(self, name: str, query: str, *, shared: bool = False, by: Any, now: datetime) -> SavedFilter:
        """Raises FilterRefused. Two at once under one name: one of them (a unique constraint)."""
        name, kept = _name(name), self._query(query, by)
        if shared:
            self._check_shared(kept, by)
        if SavedFilter.objects.filter(list=self.word, owner=by).count() >= MOST:
            raise FilterRefused(
                "too_many", _("You have %(n)s saved filters already.") % {"n": MOST}, _("Delete some.")
            )
        saved = SavedFilter(list=self.word, owner=by, name=name, query=kept, shared=shared, created_at=now)
        return _write(saved, "save", now)

    def change(
        self,
        saved: SavedFilter,
        *,
        name: str | None = None,
        query: str | None = None,
        shared: bool | None = None,
        by: Any,
        now: datetime,
    ) -> SavedFilter:
        """What is None stays. Raises FilterRefused."""
        _check_owner(saved, by, "change")
        if name is not None:
            saved.name = _name(name)
        if query is not None:
            saved.query = self._query(query, by)
        if shared is not None:
            saved.shared = shared
        if saved.shared:
            self._check_shared(saved.query, by)
        return _write(saved, "change", now)

    def delete(self, saved: SavedFilter, *, by: Any, now: datetime) -> None:
        """Raises FilterRefused."""
        _check_owner(saved, by, "delete")
        with transaction.atomic():
            _record(saved, "delete", now)
            saved.delete()

    def _query(self, query: str, by: Any) -> str:
        if len(query) > LONGEST_QUERY:
            raise FilterRefused("too_long", _("This filter is too long to be saved."))
        kept = self.filter_part(QueryDict(query.removeprefix("?")))
        if not kept:
            raise FilterRefused(
                "empty", _("There is no filter to be saved."), _("Choose something to look for first.")
            )
        if problem := self.checked(kept, by).problem:
            raise FilterRefused("bad_filter", problem)
        return kept.urlencode()

    def _check_shared(self, query: str, by: Any) -> None:
        if why := self.why_not_shared(query, by):
            raise FilterRefused("masked", why, _("Keep it for yourself."))


def _check_owner(saved: SavedFilter, by: Any, action: str) -> None:
    if saved.owner_id != by.pk:
        reason = _("This filter is %(name)s's: only they change it.") % {"name": saved.owner.get_username()}
        record_refused(f"{action}_filter", by=by, target=f"filter:{saved.pk}", why=reason)
        refused = FilterRefused("not_owner", reason, _("Save it under a name of your own."))
        mark_kept(refused)
        raise refused


def _write(saved: SavedFilter, action: str, now: datetime) -> SavedFilter:
    try:
        with transaction.atomic():
            saved.save()
            _record(saved, action, now)
    except IntegrityError as error:
        raise FilterRefused(
            "exists", _("You have a filter of this name already."), _("Choose another name.")
        ) from error
    return saved


def _record(saved: SavedFilter, action: str, now: datetime) -> None:
    """Without what it looks for: that may be personal or masked."""
    detail = {"name": saved.name, "shared": saved.shared}
    record(f"{action}_filter", by=saved.owner, now=now, target=f"filter:{saved.pk}", detail=detail)


def _name(name: str) -> str:
    """One line of what can be seen. Raises FilterRefused."""
    words = "".join(" " if unicodedata.category(each) in INVISIBLE else each for each in storable(name))
    cleaned = " ".join(words.split())
    if not cleaned:
        raise FilterRefused("no_name", _("Give the filter a name."))
    if len(cleaned) > LONGEST_NAME:
        reason = _("This name is too long: at most %(n)s characters.") % {"n": LONGEST_NAME}
        raise FilterRefused("too_long", reason, _("Choose another name."))
    return cleaned
