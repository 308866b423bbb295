"""Filters of lists over REST. A name that a list does not know is refused: misspelt, it would match
everything."""

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework import serializers
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

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
