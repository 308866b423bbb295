"""Filters of a long list under a name: one's own, and those that others share. Whoever uses one finds what
they may see themselves, nothing more.

Each list has a table of its own for them, with `owner`, `name`, `query` (the filter's part of an address),
`shared` and `created_at`, a name once per owner.
"""

import unicodedata
from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db import IntegrityError, models, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from console.ui.text import INVISIBLE
from contract.text import storable

MOST = 200  # of one person
LONGEST_NAME, LONGEST_QUERY = 100, 4000

Row = TypeVar("Row", bound=models.Model)


class FilterRefused(Exception):
    """Nothing was saved. `code` is a stable word: `no_name`, `exists`, `too_many`, `too_long`, `empty`,
    `bad_filter`, `masked`, `not_owner`."""

    def __init__(self, code: str, reason: str, what_to_do: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason, self.what_to_do = code, reason, what_to_do


class SavedFilters(ABC, Generic[Row]):
    """Those of one list."""

    def __init__(self, model: type[Row]) -> None:
        self.model = model

    @abstractmethod
    def filter_part(self, query: str, by: Any) -> str:
        """What of an address is a filter, without what is empty. Raises FilterRefused for what finds
        nothing."""

    def check_shared(self, query: str, by: Any) -> None:
        """Raises FilterRefused for what is not for everybody."""

    def told(self, action: str, saved: Any, now: datetime) -> None:
        """In the transaction of it: `save_…`, `change_…`, `delete_…` of the list's word."""

    def told_refused(self, saved: Any, by: Any, why: str) -> None:
        """Somebody tried to change what is another's."""

    def usable(self, user: Any) -> QuerySet[Row]:
        """Those that this person may use, by name."""
        mine = self.model._default_manager.filter(Q(owner=user) | Q(shared=True))
        return mine.select_related("owner").order_by("name", "pk")

    def save(self, name: str, query: str, *, shared: bool = False, by: Any, now: datetime) -> Row:
        """Raises FilterRefused. Two at once under one name: one of them (a unique constraint)."""
        name, kept = _name(name), self._query(query, by)
        if shared:
            self.check_shared(kept, by)
        if self.model._default_manager.filter(owner=by).count() >= MOST:
            raise FilterRefused(
                "too_many", _("You have %(n)s saved filters already.") % {"n": MOST}, _("Delete some.")
            )
        saved: Row = self.model(owner=by, name=name, query=kept, shared=shared, created_at=now)
        self._write(saved, "save", now)
        return saved

    def change(
        self,
        saved: Any,
        *,
        name: str | None = None,
        query: str | None = None,
        shared: bool | None = None,
        by: Any,
        now: datetime,
    ) -> Row:
        """What is None stays. Raises FilterRefused."""
        self._check_owner(saved, by)
        if name is not None:
            saved.name = _name(name)
        if query is not None:
            saved.query = self._query(query, by)
        if shared is not None:
            saved.shared = shared
        if saved.shared:
            self.check_shared(saved.query, by)
        self._write(saved, "change", now)
        changed: Row = saved
        return changed

    def delete(self, saved: Any, *, by: Any, now: datetime) -> None:
        """Raises FilterRefused."""
        self._check_owner(saved, by)
        with transaction.atomic():
            self.told("delete", saved, now)
            saved.delete()

    def _query(self, query: str, by: Any) -> str:
        if len(query) > LONGEST_QUERY:
            raise FilterRefused("too_long", _("This filter is too long to be saved."))
        return self.filter_part(query.removeprefix("?"), by)

    def _check_owner(self, saved: Any, by: Any) -> None:
        if saved.owner_id != by.pk:
            reason = _("This filter is %(name)s's: only they change it.") % {
                "name": saved.owner.get_username()
            }
            self.told_refused(saved, by, reason)
            raise FilterRefused("not_owner", reason, _("Save it under a name of your own."))

    def _write(self, saved: Any, action: str, now: datetime) -> None:
        try:
            with transaction.atomic():
                saved.save()
                self.told(action, saved, now)
        except IntegrityError as error:
            raise FilterRefused(
                "exists", _("You have a filter of this name already."), _("Choose another name.")
            ) from error


def nothing_to_save() -> FilterRefused:
    return FilterRefused(
        "empty", _("There is no filter to be saved."), _("Choose something to look for first.")
    )


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
