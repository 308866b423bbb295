"""Filters of a long list under a name: one's own, and those that others share. Whoever uses one finds what
they may see themselves, nothing more."""

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.audit import text as words
from console.filters import ListFilter
from console.models import SavedFilter
from console.operations.inputs import Flag, OtherText, TextInput
from console.operations.operation import Act, Done, Operation, Resource
from console.operations.refusals import Refused, WronglyAsked
from console.ui.text import INVISIBLE
from contract.typed import storable

MOST = 200  # of one person in one list
LONGEST_NAME, LONGEST_QUERY = 100, 4000

words.DETAILS.declare({"shared": gettext_lazy("shared")})


class SavedFilters(ABC):
    """Those of one list, whose filter is `filters`. `word` names it in their rows."""

    word: ClassVar[str]
    filters: ClassVar[type[ListFilter]]

    @staticmethod
    def of(saved: SavedFilter) -> "SavedFilters":
        """Those of its list."""
        return next(each for each in SavedFilters.__subclasses__() if each.word == saved.list)()

    def filter_part(self, query: QueryDict) -> QueryDict:
        """Returns what of an address is the filter, without what holds anyway."""
        kept = self.filters.part_of(query)
        for name, value in self.filters.holds_anyway.items():
            if kept.getlist(name) == [value]:
                del kept[name]
        return kept

    def checked(self, query: QueryDict, by: Any) -> ListFilter:
        """As this person may use it."""
        return self.filters(query)

    @abstractmethod
    def url_of(self, saved: SavedFilter) -> str:
        """Where the list shows what it finds."""

    def why_not_shared(self, query: str, by: Any) -> str:
        """Returns why it is not for everybody; empty: it is."""
        return ""

    def usable(self, user: Any) -> QuerySet[SavedFilter]:
        """Those that this person may use, by name."""
        mine = SavedFilter.objects.filter(Q(owner=user) | Q(shared=True), list=self.word)
        return mine.select_related("owner").order_by("name", "pk")

    def words(self, saved: SavedFilter, user: Any) -> tuple[list[tuple[str, str]], str]:
        """Label and value of each field that is set; why it finds nothing any more, empty where it does."""
        filters = self.checked(QueryDict(saved.query), user)
        problem = filters.problem
        return [] if problem else filters.words, problem

    def query(self, query: str, by: Any) -> str:
        """Returns the query as it is kept. Raises WronglyAsked."""
        kept = self.filter_part(QueryDict(query.removeprefix("?")))
        if not kept:
            raise WronglyAsked("empty", _("Nothing to save: no filter is set."), _("Set a filter first."))
        if problem := self.checked(kept, by).problem:
            raise WronglyAsked("bad_filter", problem)
        return kept.urlencode()


class _SavedFilters(Resource[SavedFilter]):
    """They have no pages but those of their lists."""

    def __post_init__(self) -> None:
        """Names no object that an entry of the audit could lead to."""


class _Owner:
    def why_not(self, user: Any, saved: SavedFilter) -> str:
        if saved.owner_id == user.pk:
            return ""
        text = _("This filter belongs to %(name)s: only the owner can change it.") % {
            "name": saved.owner.get_username()
        }
        return text + " " + _("Save it under a name of your own.")


class _OfFilter(Operation[SavedFilter]):
    """The audit knows its name, not what it looks for: that may be personal or masked."""

    on = _SavedFilters(
        name="filter",
        rows=lambda: SavedFilter.objects.select_related("owner"),
        key="pk",
        route="saved-filters/<int:pk>/",
        view="",
        list_page="",
        title=gettext_lazy("Saved filters"),
    )
    permission, immediate = _Owner(), True

    def write(self, saved: SavedFilter, act: Act) -> None:
        """Writes in a transaction. Raises WronglyAsked."""
        if saved.shared and (why := SavedFilters.of(saved).why_not_shared(saved.query, act.by)):
            raise WronglyAsked("masked", why, _("Keep the filter private."))
        saved.save()
        act.record(about={"target": self.on.target(saved)}, name=saved.name, shared=saved.shared)


class SaveFilter(_OfFilter):
    """Saves a filter; names are unique per user. The given object has its list and its owner."""

    code, label, makes = "saved_filter.save", gettext_lazy("Save"), True
    inputs = {
        "name": TextInput(gettext_lazy("Name"), LONGEST_NAME),
        "query": TextInput(gettext_lazy("filter"), LONGEST_QUERY, untold=True),
        "shared": Flag(gettext_lazy("shared with everyone")),
    }

    def run(
        self, saved: SavedFilter, act: Act, *, name: str, query: str, shared: bool | None, **inputs: Any
    ) -> Done:
        """Two at once under one name: one of them (a unique constraint)."""
        saved.name, saved.query = _name(name), SavedFilters.of(saved).query(query, act.by)
        saved.shared, saved.created_at = bool(shared), act.now
        if SavedFilter.objects.filter(list=saved.list, owner=saved.owner_id).count() >= MOST:
            raise Refused(
                "too_many",
                _("Filter not saved: you have reached the limit of %(n)s saved filters.") % {"n": MOST},
                _("Delete the filters that you no longer need."),
            )
        with _named_once(), transaction.atomic():
            self.write(saved, act)
        return Done(_("Filter saved."), saved)


class ChangeFilter(_OfFilter):
    """Changes a filter of its owner."""

    code, label = "saved_filter.change", pgettext_lazy("what people do", "Change")
    inputs = {
        "name": OtherText(gettext_lazy("Name"), LONGEST_NAME),
        "query": OtherText(gettext_lazy("filter"), LONGEST_QUERY, untold=True),
        "shared": Flag(gettext_lazy("shared with everyone")),
    }

    def hidden(self, saved: SavedFilter) -> frozenset[str]:
        return frozenset({"query"})

    def run(
        self,
        saved: SavedFilter,
        act: Act,
        *,
        name: str | None,
        query: str | None,
        shared: bool | None,
        **inputs: Any,
    ) -> Done:
        """What is None stays."""
        with _named_once(), transaction.atomic():
            saved = self.on.rows().select_for_update(of=("self",)).get(pk=saved.pk)
            if name is not None:
                saved.name = _name(name)
            if query is not None:
                saved.query = SavedFilters.of(saved).query(query, act.by)
            if shared is not None:
                saved.shared = shared
            self.write(saved, act)
        return Done(_("Filter changed."), saved)


class DeleteFilter(_OfFilter):
    """Deletes a filter of its owner."""

    code, label = "saved_filter.delete", gettext_lazy("Delete filter")

    @transaction.atomic
    def run(self, saved: SavedFilter, act: Act, **inputs: Any) -> Done:
        saved = self.on.rows().select_for_update(of=("self",)).get(pk=saved.pk)
        act.record(name=saved.name, shared=saved.shared)
        saved.delete()
        return Done(_("Filter deleted. The records that matched it are not affected."), is_gone=True)


@contextmanager
def _named_once() -> Iterator[None]:
    """Around the transaction."""
    try:
        yield
    except IntegrityError as error:
        raise Refused(
            "exists", _("You already have a filter with this name."), _("Choose another name.")
        ) from error


def _name(name: str) -> str:
    """One line of what can be seen. Raises WronglyAsked."""
    seen = "".join(" " if unicodedata.category(each) in INVISIBLE else each for each in storable(name))
    if not (cleaned := " ".join(seen.split())):
        raise WronglyAsked("no_name", _("Enter a name for the filter."))
    return cleaned
