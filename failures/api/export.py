"""/api/v1/protocols/export/: what a filter finds as a file of CSV or JSON lines."""

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from console.audit.refusals import LOOKS_BESIDE_FILES, Audited
from console.exports import FORMATS, file_response
from console.operations.refusals import Refused
from console.rest.errors import Conflict
from console.rest.lists import asked_in, check_filter
from failures.exporting import EXPORT, stream_of
from failures.finding.filters import ProtocolFilter

PERMISSIONS = ("failures.view_failureprotocol", "failures.can_export_protocols")


class ProtocolExportQuery(serializers.Serializer[Any]):
    """Beside it the filter of the list: `setting`, `server`, `since`, …"""

    file = serializers.ChoiceField(FORMATS, default="csv")


class ExportProtocols(Audited, APIView):
    """Streamed, newest first; JSON lines have tracebacks and properties as well. 409 `too_many` above 100,000
    protocols: then narrow the filter. What breaks off is not ended as HTTP wants it."""

    action_permissions: dict[str, tuple[str, ...]] = {"get": PERMISSIONS}
    audit_action, looks = EXPORT, LOOKS_BESIDE_FILES

    @extend_schema(parameters=[ProtocolExportQuery], responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request: Request) -> StreamingHttpResponse:
        form, filters = asked_in(request, ProtocolExportQuery)["file"], ProtocolFilter(request.query_params)
        check_filter(request.query_params, filters)
        try:
            stream = stream_of(filters, form, request.user)
        except Refused as refused:
            raise Conflict(refused.reason, code=refused.code, where="query") from refused
        return file_response(stream, form, "protocols")
