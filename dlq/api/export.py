"""/api/v1/dead-letters/export/: what a filter finds as a file of CSV or JSON lines."""

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.views import APIView

from agents.pools.rights import may_anywhere
from console.audit.refusals import LOOKS_BESIDE_FILES, Audited
from console.exports.rows import FORMATS
from console.operations.refusals import Refused
from console.rest.errors import Conflict
from console.rest.serializers import check_clear
from dlq.exports.exporting import EXPORT
from dlq.pages.export import export_response, filter_in
from dlq.rights import SEE
from dlq.search.filter import SEVERAL, LetterFilter


class ExportQuery(serializers.Serializer[Any]):
    """Beside these the filter of the list of dead letters: `setting`, `queue`, `state`, `exception`, …"""

    file = serializers.ChoiceField(FORMATS, default="csv")
    bodies = serializers.BooleanField(
        default=False, help_text="Whole letters; JSON lines of them can be imported again."
    )


class ExportLetters(Audited, APIView):
    """Streamed, newest first, masked for who asks. 409 `too_many` above 100,000 letters (10,000 whole ones):
    then narrow the filter, or use `./ma manage dlq export`. What breaks off is not ended as HTTP wants it."""

    action_permissions: dict[str, tuple[str, ...]] = {"get": ()}
    audit_action, looks = EXPORT, LOOKS_BESIDE_FILES

    @extend_schema(parameters=[ExportQuery], responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request: Request) -> StreamingHttpResponse:
        if not may_anywhere(request.user, SEE):
            raise PermissionDenied
        asked = ExportQuery(data=request.query_params)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        check_clear(request.query_params, LetterFilter.base_filters, SEVERAL)
        query = filter_in(request.query_params)
        try:
            return export_response(
                request.user, key="", query=query, form=wanted["file"], bodies=wanted["bodies"]
            )
        except Refused as refused:
            raise Conflict(refused.reason, code=refused.code, where="query") from refused
