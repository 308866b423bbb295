"""Saved filters on pages and over REST: the bar above a list, the list of them, saving, changing and
deleting one. A list gets the views by deriving them with its `filters` and its permission."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.audit.refusals import Audited
from console.models import SavedFilter
from console.operations.operation import Operation, perform
from console.operations.rest import as_problems, performing
from console.operations.web import FormPage
from console.rest.lists import NoFilters
from console.rest.serializers import BodySerializer
from console.saved_filters.operations import (
    LONGEST_NAME,
    LONGEST_QUERY,
    MOST,
    ChangeFilter,
    DeleteFilter,
    SavedFilters,
    SaveFilter,
)
from console.ui.page import Text, View, add_page, link, page

# Names above a list; all of them have a page.
IN_BAR = 20
PLACES = {SaveFilter: "save/", ChangeFilter: "<int:pk>/change/", DeleteFilter: "<int:pk>/delete/"}


@dataclass(frozen=True, slots=True)
class SavedFilterRow:
    """`words`: label and value of each field that is set; `problem`: why it finds nothing any more."""

    saved: SavedFilter
    url: str
    mine: bool
    words: list[tuple[str, str]]
    problem: str
    change_url: str
    delete_url: str


class SavedFilterPage(FormPage):
    """Page of the list whose `filters` they are."""

    filters: SavedFilters | None = None

    def _object(self, address: Mapping[str, Any]) -> SavedFilter:
        assert self.filters is not None
        user: Any = self.request.user
        if "pk" not in address:
            return SavedFilter(list=self.filters.word, owner=user)
        return get_object_or_404(self.filters.usable(user), pk=address["pk"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFilterPages:
    """Those of one list. `guard` lets in who may see it; `name` is what the names of their addresses begin
    with. `section` and `listed`: label and name of the address of what they belong to, and of the list."""

    filters: SavedFilters
    guard: Callable[[View], View]
    route: str
    name: str
    title: Text
    about: Text
    how: Text
    section: tuple[Text, str]
    listed: tuple[Text, str]

    def register(self) -> None:
        add_page(self.route, require_safe(self.guard(self.index)), f"{self.name}s")
        for operation, place in PLACES.items():
            view = SavedFilterPage.view_of(operation, self.guard, filters=self.filters, home=f"{self.name}s")
            add_page(self.route + place, view, f"{self.name}_{operation.verb()}")

    def bar(self, request: HttpRequest, query: QueryDict) -> dict[str, Any]:
        """Returns what `ma/saved_bar.html` shows above the list that shows the filter `query`."""
        own, there = _as_set(query), [*self.filters.usable(request.user)[: IN_BAR + 1]]
        return {
            "saved": [
                (each, self.filters.url_of(each), bool(own) and _as_set(QueryDict(each.query)) == own)
                for each in there[:IN_BAR]
            ],
            "more_saved": len(there) > IN_BAR,
            "to_save": query.urlencode(),
            "save_back": request.get_full_path(),
            "saved_url": link(f"{self.name}s"),
            "save_url": link(f"{self.name}_save"),
        }

    def index(self, request: HttpRequest) -> HttpResponseBase:
        (above, above_url), (listed, listed_url) = self.section, self.listed
        return page(
            request,
            "ma/saved_filters.html",
            title=self.title,
            section=above_url,
            crumbs=[(above, link(above_url))],
            about=self.about,
            how=self.how,
            list_url=link(listed_url),
            list_name=listed,
            rows=[self._row(request, each) for each in self.filters.usable(request.user)[: 2 * MOST]],
            back=request.get_full_path(),
        )

    def _row(self, request: HttpRequest, saved: SavedFilter) -> SavedFilterRow:
        words, problem = self.filters.words(saved, request.user)
        urls = (link(f"{self.name}_{action}", saved.pk) for action in ("change", "delete"))
        mine = saved.owner_id == request.user.pk
        return SavedFilterRow(saved, self.filters.url_of(saved), mine, words, problem, *urls)


def _as_set(query: QueryDict) -> frozenset[tuple[str, tuple[str, ...]]]:
    """Two filters that differ in the order of their parts are one."""
    return frozenset((name, tuple(values)) for name, values in query.lists())


class SavedFilterSerializer(serializers.ModelSerializer[SavedFilter]):
    owner = serializers.CharField(source="owner.username", read_only=True)

    class Meta:
        model = SavedFilter
        fields = ("id", "name", "query", "shared", "owner", "created_at")
        read_only_fields = fields


class SavedFilterAskSerializer(BodySerializer):
    name = serializers.CharField(max_length=LONGEST_NAME)
    query = serializers.CharField(
        max_length=LONGEST_QUERY, help_text="Query string of the list: `exception=KeyError&span=1d`."
    )
    shared = serializers.BooleanField(required=False, default=False)


class SavedFilterChangeSerializer(BodySerializer):
    """Omitted fields stay unchanged."""

    name = serializers.CharField(max_length=LONGEST_NAME, required=False)
    query = serializers.CharField(max_length=LONGEST_QUERY, required=False)
    shared = serializers.BooleanField(required=False)


class SavedFilterList(Audited, generics.ListAPIView[SavedFilter]):
    """Saved filters of the list: own and shared ones."""

    filters: ClassVar[SavedFilters]
    queryset = SavedFilter.objects.all()
    serializer_class = SavedFilterSerializer
    filter_backends = (NoFilters,)
    audit_action = SaveFilter.code

    def get_queryset(self) -> QuerySet[SavedFilter]:
        return self.filters.usable(self.request.user)

    @extend_schema(
        request=SavedFilterAskSerializer,
        responses={201: SavedFilterSerializer},
        extensions=performing(SaveFilter),
    )
    def post(self, request: Request) -> Response:
        """Filter names are unique per user."""
        owner: Any = request.user
        saved = SavedFilter(list=self.filters.word, owner=owner)
        made = _done(SaveFilter, saved, request, SavedFilterAskSerializer)
        return Response(SavedFilterSerializer(made).data, status=status.HTTP_201_CREATED)


class OneSavedFilter(Audited, APIView):
    """A saved filter."""

    filters: ClassVar[SavedFilters]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.audit_action = (DeleteFilter if request.method == "DELETE" else ChangeFilter).code
        super().initial(request, *args, **kwargs)

    @extend_schema(responses=SavedFilterSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(SavedFilterSerializer(self._one(pk)).data)

    @extend_schema(
        request=SavedFilterChangeSerializer,
        responses=SavedFilterSerializer,
        extensions=performing(ChangeFilter),
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Only the owner can change a filter."""
        made = _done(ChangeFilter, self._one(pk), request, SavedFilterChangeSerializer)
        return Response(SavedFilterSerializer(made).data)

    @extend_schema(request=None, responses={204: None}, extensions=performing(DeleteFilter))
    def delete(self, request: Request, pk: int) -> Response:
        """Only the owner can delete a filter."""
        with as_problems(""):
            perform(DeleteFilter, self._one(pk), request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _one(self, pk: int) -> SavedFilter:
        return get_object_or_404(self.filters.usable(self.request.user), pk=pk)


def _done(
    operation: type[Operation[SavedFilter]], saved: SavedFilter, request: Request, body: type[BodySerializer]
) -> SavedFilter:
    said = body(data=request.data)
    said.is_valid(raise_exception=True)
    with as_problems(""):
        made: SavedFilter = perform(operation, saved, request.user, **said.validated_data).made
    return made
