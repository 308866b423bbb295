"""/api/v1/dead-letters/export/ and /api/v1/imports/: what a filter finds as a file; messages of JSON lines
into the subscription of one setting, for tests."""

from typing import Any

from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.pools.rights import check_anywhere
from console.audit.refusals import LOOKS_BESIDE_FILES, Audited
from console.exports import FORMATS
from console.operations.operation import check_allowed, perform
from console.operations.refusals import Refused
from console.operations.rest import as_problems, performing
from console.rest.errors import Conflict
from console.rest.lists import asked_in, check_clear, parameters_of
from dlq.exports import EXPORT
from dlq.imports.operations import ImportMessages, plan
from dlq.imports.rules import LARGEST, parcel_of
from dlq.pages.dead_letters.export import export_response, filter_in
from dlq.rights import SEE
from dlq.search.filter import LetterFilter
from dlq.subscriptions.operations import settings_seen


class ExportQuery(serializers.Serializer[Any]):
    """Also accepts the filters of the list of dead letters: `setting`, `queue`, `state`, `exception`, …"""

    file = serializers.ChoiceField(FORMATS, default="csv")
    bodies = serializers.BooleanField(
        default=False, help_text="Include whole messages; such JSON lines can be imported."
    )


class ExportLetters(Audited, APIView):
    """Streams dead letters, newest first, masked by the user's permissions. 409 `too_many` above 100,000 dead
    letters (10,000 with bodies): narrow the filter, or use `./ma manage dlq export`. An interrupted export
    does not end as a complete HTTP response."""

    action_permissions: dict[str, tuple[str, ...]] = {"get": ()}
    audit_action, looks = EXPORT, LOOKS_BESIDE_FILES

    @extend_schema(
        parameters=[*parameters_of(LetterFilter), ExportQuery],
        responses={(200, "text/csv"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        check_anywhere(request.user, SEE)
        wanted = asked_in(request, ExportQuery)
        check_clear(request.query_params, LetterFilter)
        query = filter_in(request.query_params)
        try:
            return export_response(
                request.user, key="", query=query, form=wanted["file"], bodies=wanted["bodies"]
            )
        except Refused as refused:
            raise Conflict(refused.reason, code=refused.code, where="query") from refused


# -- /api/v1/imports/: messages of JSON lines into the subscription of one setting, for tests ----------------


class ImportSerializer(serializers.Serializer[Any]):
    """`lines`: JSON lines, each from an export of whole dead letters or `{"body": {"text": "…"}}`.
    Nothing is sent unless `dry_run` is false."""

    setting = serializers.CharField(max_length=61)
    lines = serializers.CharField(trim_whitespace=False)
    dry_run = serializers.BooleanField(required=False, default=True)
    again = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Import the same lines again, although they were imported before.",
    )
    reason = serializers.CharField(max_length=2000, required=False, default="", allow_blank=True)


class ImportedSerializer(serializers.Serializer[Any]):
    messages = serializers.IntegerField()
    bytes = serializers.IntegerField()
    sent = serializers.BooleanField()
    operation = serializers.UUIDField(help_text="Id of the operation in the audit log.")
    imported_before = serializers.BooleanField()


class Imports(Audited, APIView):
    """Requires the permission to import to the setting. At most 1,000 messages. After an error the same
    request can be repeated: nothing is sent twice."""

    # JSON in JSON: every quote of a line is two characters.
    body_limit = 2 * LARGEST
    audit_action = ImportMessages.code
    action_permissions: dict[str, tuple[str, ...]] = {"post": ()}

    @extend_schema(
        request=ImportSerializer, responses={200: ImportedSerializer}, extensions=performing(ImportMessages)
    )
    def post(self, request: Request) -> Response:
        """Returns the messages that would be sent (`dry_run`) or were sent. 400 with `problems` if a line is
        invalid: nothing is sent."""
        ask = ImportSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        asked = ask.validated_data
        setting = get_object_or_404(settings_seen(request.user), key=asked["setting"])
        with as_problems("setting"):
            check_allowed(ImportMessages, setting, request.user)
        with as_problems("lines"):
            wanted = plan(setting, parcel_of(asked["lines"].encode("utf-8", "replace")))
        if not asked["dry_run"]:
            how = {"reason": asked["reason"], "again": asked["again"]}
            with as_problems("setting"):
                perform(ImportMessages, setting, request.user, wanted=wanted, **how)
        return Response(
            {
                "messages": len(wanted.parcel.messages),
                "bytes": wanted.parcel.size,
                "sent": not asked["dry_run"],
                "operation": wanted.operation,
                "imported_before": wanted.done is not None,
            }
        )
