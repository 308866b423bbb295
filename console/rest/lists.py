"""Lists over REST in pages by key: their order, what they are narrowed by, what is refused."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.pagination import BasePagination
from rest_framework.request import Request

from console.filters import ListFilter, NamesFilter
from console.lists.keyset import number_in
from console.rest.defaults import KeysetPages


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


# -- lists with the filter of their page ---------------------------------------------------------------------


def parameters_of(
    kind: type[ListFilter], *more: OpenApiParameter, largest_page: int
) -> list[OpenApiParameter]:
    """Of the filter, field by field."""
    found = []
    for name, each in kind.base_filters.items():
        choices = () if isinstance(each, NamesFilter) else each.extra.get("choices", ())
        found.append(
            OpenApiParameter(
                name,
                getattr(each, "kind", str),
                many=name in kind.several,
                enum=[str(value) for value, _label in choices] or None,
                description=getattr(each, "about", ""),
            )
        )
    return [*found, *more, OpenApiParameter("page_size", int, description=f"1 to {largest_page}.")]


def check_clear(query: QueryDict, kind: type[ListFilter]) -> None:
    """Raises ValidationError."""
    if problems := kind.unclear(query):
        raise serializers.ValidationError(problems)


def check_filter(query: QueryDict, filters: ListFilter) -> None:
    """Raises ValidationError: a program is refused what a page would show beside the field."""
    check_clear(query, type(filters))
    if not filters.is_valid():
        raise serializers.ValidationError(filters.form.errors)
