"""/api/v1/protocols/ for people."""

from collections.abc import Mapping
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param
from rest_framework.views import APIView

from console.audit.refusals import LOOKS_BESIDE_FILES, Audited
from console.exports import FORMATS, file_response
from console.lists.keyset import Place, place_in
from console.operations.refusals import Refused
from console.rest.errors import Conflict
from console.rest.lists import asked_in, check_filter, number_asked, parameters_of
from failures.models import FailureProtocol
from failures.protocols.exporting import EXPORT, stream_of
from failures.protocols.filter import ProtocolFilter
from failures.protocols.messages import Case, MessageState, message_states
from failures.protocols.search import WHOLE_ONLY, listed, protocols_at

PAGE_SIZE, LARGEST_PAGE = 100, 500
PLACE = "Position in the list, from `next` or `previous`."
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


class ListedProtocolSerializer(ProtocolHeadSerializer):
    """`message_state`: current place of the message; empty if equal messages share the key."""

    message_state = serializers.SerializerMethodField()

    @extend_schema_field(serializers.ChoiceField([*MessageState.choices, ("", "")]))
    def get_message_state(self, row: FailureProtocol) -> str:
        states: Mapping[Case, MessageState] = self.context["states"]
        state = states.get((row.setting_key, row.message_key))
        return state.value if state is not None and not row.message_key_weak else ""


class ProtocolPageSerializer(serializers.Serializer[Any]):
    """`count` protocols match; with `more` it is a lower bound. `looked_back_to`: end of the time searched so
    far; `next` continues from there, even if `results` is short or empty."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    count = serializers.IntegerField()
    more = serializers.BooleanField()
    looked_back_to = serializers.DateTimeField(allow_null=True)
    results = ListedProtocolSerializer(many=True)


def _place(request: Request, name: str) -> Place | None:
    """Raises ValidationError."""
    text = request.query_params.get(name, "")
    place = place_in(text, FailureProtocol)
    if text and place is None:
        raise serializers.ValidationError(
            {name: "Invalid position: use the value from `next` or `previous`."}
        )
    return place


class ProtocolList(generics.GenericAPIView[FailureProtocol]):
    queryset = FailureProtocol.objects.all()
    serializer_class = ListedProtocolSerializer
    filter_backends = ()

    @extend_schema(
        operation_id="protocols_list",
        parameters=parameters_of(
            ProtocolFilter,
            *(OpenApiParameter(name, str, description=PLACE) for name in ("before", "after")),
            largest_page=LARGEST_PAGE,
        ),
        responses=ProtocolPageSerializer,
        description="Newest first. Filters are combined with AND. `since` is inclusive, `until` exclusive. "
        "The response time is bounded: a text search starts from the newest failures.",
    )
    def get(self, request: Request) -> Response:
        filters = ProtocolFilter(request.query_params, user=request.user)
        check_filter(request.query_params, filters)
        before, after = _place(request, "before"), _place(request, "after")
        size = number_asked(request, "page_size", LARGEST_PAGE) or PAGE_SIZE
        part, counted = listed(filters.asked, before=before, after=after, size=size)

        rows = protocols_at(part.places)
        context = {**self.get_serializer_context(), "states": message_states(rows)}

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
                "results": ListedProtocolSerializer(rows, many=True, context=context).data,
            }
        )


class OneProtocol(generics.RetrieveAPIView[FailureProtocol]):
    queryset = FailureProtocol.objects.all()
    serializer_class = ProtocolSerializer


# -- /api/v1/protocols/export/: what a filter finds as a file of CSV or JSON lines ---------------------------


PERMISSIONS = ("failures.view_failureprotocol", "failures.can_export_protocols")


class ProtocolExportQuery(serializers.Serializer[Any]):
    """Also accepts the filters of the list: `setting`, `server`, `since`, …"""

    file = serializers.ChoiceField(FORMATS, default="csv")


class ExportProtocols(Audited, APIView):
    """Streams protocols, newest first; JSON lines include tracebacks and properties. 409 `too_many` above
    100,000 protocols: narrow the filter. An interrupted export does not end as a complete HTTP response."""

    action_permissions: dict[str, tuple[str, ...]] = {"get": PERMISSIONS}
    audit_action, looks = EXPORT, LOOKS_BESIDE_FILES

    @extend_schema(
        parameters=[*parameters_of(ProtocolFilter), ProtocolExportQuery],
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        form = asked_in(request, ProtocolExportQuery)["file"]
        filters = ProtocolFilter(request.query_params, user=request.user)
        check_filter(request.query_params, filters)
        try:
            stream = stream_of(filters, form, request.user)
        except Refused as refused:
            raise Conflict(refused.reason, code=refused.code, where="query") from refused
        return file_response(stream, form, "protocols")
