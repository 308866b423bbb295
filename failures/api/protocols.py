"""/api/v1/protocols/ for people."""

from typing import Any

import django_filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from console.filters import InstantFilter
from console.rest.serializers import check_clear
from failures.finding.filters import NamesFilter, ProtocolFilter
from failures.finding.pages import WHOLE_ONLY, listed, protocols_at
from failures.finding.search import Place, place_in
from failures.models import FailureProtocol

PAGE_SIZE, LARGEST_PAGE = 100, 500
# Ids by which rows join; people get the names beside them.
INTERNAL = ("setting", "activation", "run", "server")


class ProtocolSerializer(serializers.ModelSerializer[FailureProtocol]):
    redelivered = serializers.BooleanField(read_only=True)

    class Meta:
        model = FailureProtocol
        exclude = INTERNAL


class ProtocolHeadSerializer(serializers.ModelSerializer[FailureProtocol]):
    redelivered = serializers.BooleanField(read_only=True)

    class Meta:
        model = FailureProtocol
        exclude = (*INTERNAL, *WHOLE_ONLY)


class ProtocolPageSerializer(serializers.Serializer[Any]):
    """`count` match, or (`more`) at least so many. `looked_back_to`: in the time there was no further; `next`
    goes on from there, though `results` may be few or none."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    count = serializers.IntegerField()
    more = serializers.BooleanField()
    looked_back_to = serializers.DateTimeField(allow_null=True)
    results = ProtocolHeadSerializer(many=True)


def _parameters() -> list[OpenApiParameter]:
    """The filter of the pages, field by field."""
    kinds: dict[type, Any] = {
        InstantFilter: OpenApiTypes.DATETIME,
        django_filters.UUIDFilter: OpenApiTypes.UUID,
    }
    found = []
    for name, each in ProtocolFilter.base_filters.items():
        choices = (
            None
            if isinstance(each, NamesFilter)
            else [str(value) for value, _ in each.extra.get("choices", ())]
        )
        found.append(OpenApiParameter(name, kinds.get(type(each), str), enum=choices or None))
    for name in ("before", "after"):
        found.append(
            OpenApiParameter(name, str, description="A place in the list, from `next` or `previous`.")
        )
    return [*found, OpenApiParameter("page_size", int, description=f"1 to {LARGEST_PAGE}.")]


def _place(request: Request, name: str) -> Place | None:
    """Raises ValidationError."""
    text = request.query_params.get(name, "")
    place = place_in(text)
    if text and place is None:
        raise serializers.ValidationError({name: "A place in the list, as `next` or `previous` says it."})
    return place


def _page_size(request: Request) -> int:
    """Raises ValidationError."""
    text = request.query_params.get("page_size", "")
    if not text:
        return PAGE_SIZE
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and 1 <= int(text) <= LARGEST_PAGE):
        raise serializers.ValidationError({"page_size": f"A number from 1 to {LARGEST_PAGE}."})
    return int(text)


class ProtocolList(generics.GenericAPIView[FailureProtocol]):
    queryset = FailureProtocol.objects.all()
    serializer_class = ProtocolHeadSerializer
    filter_backends = ()

    @extend_schema(
        operation_id="protocols_list",
        parameters=_parameters(),
        responses=ProtocolPageSerializer,
        description="Newest first. All filters hold together; `since` is inclusive, `until` "
        "exclusive. The answer "
        "comes in bounded time at any size: a text is looked for from the newest on.",
    )
    def get(self, request: Request) -> Response:
        check_clear(request.query_params, ProtocolFilter.base_filters)
        filters = ProtocolFilter(request.query_params)
        if not filters.is_valid():
            raise serializers.ValidationError(filters.form.errors)
        before, after, size = _place(request, "before"), _place(request, "after"), _page_size(request)
        part, counted = listed(filters.asked, before=before, after=after, size=size)

        def to(name: str, place: Place | None) -> str | None:
            bare = remove_query_param(remove_query_param(request.build_absolute_uri(), "before"), "after")
            return replace_query_param(bare, name, str(place)) if place is not None else None

        return Response(
            {
                "next": to("before", part.older),
                "previous": to("after", part.newer),
                "count": counted.count,
                "more": counted.more,
                "looked_back_to": part.stopped_at.at.isoformat() if part.stopped_at is not None else None,
                "results": self.get_serializer(protocols_at(part.places), many=True).data,
            }
        )


class OneProtocol(generics.RetrieveAPIView[FailureProtocol]):
    queryset = FailureProtocol.objects.all()
    serializer_class = ProtocolSerializer
