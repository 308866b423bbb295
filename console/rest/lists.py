"""Lists over REST in pages by key: their order, how long they are, what they are narrowed by, what is
refused, and who may call them unless a route says otherwise."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet
from django.http import QueryDict
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.filters import BaseFilterBackend
from rest_framework.pagination import BasePagination, CursorPagination, PageNumberPagination
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from console.filters import ListFilter
from console.lists.keyset import number_in
from console.ui.errors import missing_in_english


class Pages(PageNumberPagination):
    """`?page_size=` up to 1,000. Counts the rows: for what people make by hand."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000


class KeysetPages(CursorPagination):
    """The cost of a page does not grow with its number, and a row that comes in between moves nothing. In the
    `ordering` of the view."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 500

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> tuple[str, ...]:
        return tuple(getattr(view, "ordering", self.ordering))


# -- who may do what: Django's model permissions, one per action, reading included ---------------------------


METHODS = {
    "GET": "view",
    "HEAD": "view",
    "OPTIONS": "view",
    "POST": "add",
    "PUT": "change",
    "PATCH": "change",
}
METHODS["DELETE"] = "delete"


# Asked with HEAD or OPTIONS, a route needs what the first of these that it takes needs.
STANDING_FOR = ("GET", "POST", "PUT", "PATCH", "DELETE")


def needed(view: Any, method: str) -> tuple[str, ...]:
    """The permissions of a call: `view.action_permissions[action or method]`, else the model's own for the
    method."""
    declared: dict[str, tuple[str, ...]] = getattr(view, "action_permissions", {})
    action = getattr(view, "action", None)
    if method in ("HEAD", "OPTIONS"):
        method = next((each for each in STANDING_FOR if hasattr(view, each.lower())), method)
        action = getattr(view, "action_map", {}).get(method.lower())
    for name in (action, method.lower()):
        if name in declared:
            return declared[name]
    queryset = getattr(view, "queryset", None)
    if queryset is None:
        raise ImproperlyConfigured(f"{type(view).__name__} declares no permission for {method}")
    meta = queryset.model._meta
    return (f"{meta.app_label}.{METHODS[method]}_{meta.model_name}",)


class PersonPermissions(BasePermission):
    """Everything needs a person with the permission; an unknown method is left to the view to refuse.
    `message`: the framework answers it."""

    message = missing_in_english(())

    def has_permission(self, request: Request, view: Any) -> bool:
        user: Any = request.user
        if not user or not user.is_authenticated:
            return False
        method = request.method or ""
        if method not in METHODS or not hasattr(view, method.lower()):
            return True
        missing = [each for each in needed(view, method) if not user.has_perm(each)]
        self.message = missing_in_english(missing)
        return not missing


# First among the bases of a view whose list is in pages by key, in this order. It has no docstring, for that
# would describe views which have none of their own.
class ByKey:
    pagination_class: type[BasePagination] | None = KeysetPages
    filter_backends: Sequence[Any] = ()
    ordering: ClassVar[tuple[str, ...]] = ("-id",)


def asked_in(request: Request, kind: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    """What the address of a request asks for. Raises ValidationError."""
    query = kind(data=request.query_params)
    query.is_valid(raise_exception=True)
    return dict(query.validated_data)


def number_asked(request: Request, name: str, most: int) -> int | None:
    """Raises ValidationError; None where it is not said."""
    if not (text := request.query_params.get(name, "")):
        return None
    number = number_in(text)
    if number is None or number > most:
        raise serializers.ValidationError({name: f"A number from 1 to {most}."})
    return number


# -- filters that a list does not know: misspelt, they would match everything --------------------------------


# Which page of a list, and in which form.
ALWAYS = frozenset({"page", "page_size", "cursor", "format"})


def refuse_unknown(asked: Iterable[str], known: Collection[str]) -> None:
    """Raises ValidationError."""
    if unknown := sorted(set(asked) - {*known} - ALWAYS):
        raise serializers.ValidationError(
            {unknown[0]: f"Unknown filter; known filters: {sorted(set(known))}."}
        )


class StrictFilters(DjangoFilterBackend):
    """Of every list that names no other backend. A view of one object has no filters."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        if request.method in ("GET", "HEAD") and not getattr(view, "detail", False):
            kind = self.get_filterset_class(view, queryset)
            refuse_unknown(request.query_params, kind.base_filters if kind else ())
        found: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return found


class NoFilters(BaseFilterBackend):
    """Of a list that is always whole."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        refuse_unknown(request.query_params, ())
        return queryset


# -- lists with the filter of their page ---------------------------------------------------------------------


def parameters_of(
    kind: type[ListFilter], *more: OpenApiParameter, largest_page: int = 0
) -> list[OpenApiParameter]:
    """Of the filter, field by field. `largest_page` 0: what it finds does not come in pages."""
    found = []
    for name, each in kind.base_filters.items():
        choices = each.extra.get("choices", ())
        found.append(
            OpenApiParameter(
                name,
                getattr(each, "kind", str),
                many=name in kind.several,
                enum=[str(value) for value, _label in choices] or None,
                description=getattr(each, "about", ""),
            )
        )
    if largest_page:
        found.append(OpenApiParameter("page_size", int, description=f"1 to {largest_page}."))
    return [*found, *more]


def check_clear(query: QueryDict, kind: type[ListFilter]) -> None:
    """Raises ValidationError."""
    if problems := kind.unclear(query):
        raise serializers.ValidationError(problems)


def check_filter(query: QueryDict, filters: ListFilter) -> None:
    """Raises ValidationError: a program is refused what a page would show beside the field."""
    check_clear(query, type(filters))
    if not filters.is_valid():
        raise serializers.ValidationError(filters.form.errors)
