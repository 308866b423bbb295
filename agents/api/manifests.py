"""/api/v1/manifests/: settings as a file for git, exported and applied as the commands do it."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.manifests.apply import Manner, apply
from agents.manifests.document import LARGEST_BYTES, ManifestProblem, Rejected, document_of, dump, load
from agents.manifests.export import UnknownSettings, document
from console.audit.refusals import Audited
from console.operations.rest import performing_by
from console.rest.errors import ApiProblem
from console.rest.serializers import BodySerializer

# A page asks for one of these at a time; what is changed needs the right of its form besides.
SEE = (
    "agents.view_launchsetting",
    "agents.view_pool",
    "agents.view_destination",
    "agents.view_scheduledgroup",
)
APPLY = "manifest.apply"
MOST_KEYS = 500
# Of one request, for all that is to be enabled.
WAITS_SECONDS = 20.0


class ManifestTextSerializer(serializers.Serializer[Any]):
    text = serializers.CharField(help_text="YAML that `apply` accepts.")


class ManifestAskSerializer(BodySerializer):
    """`dry_run`: only return the changes. `prune`: delete groups and settings of the file's pools that the
    file does not name."""

    text = serializers.CharField(max_length=LARGEST_BYTES, trim_whitespace=False)
    dry_run = serializers.BooleanField(required=False, default=False)
    prune = serializers.BooleanField(required=False, default=False)


class ManifestChangeSerializer(serializers.Serializer[Any]):
    """`old` null: created. `new` null: deleted."""

    path = serializers.CharField()
    old = serializers.CharField(allow_null=True)
    new = serializers.CharField(allow_null=True)
    text = serializers.CharField()


class ManifestProblemSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    text = serializers.CharField()


class ManifestOutcomeSerializer(serializers.Serializer[Any]):
    """`refused`: objects that could not be enabled or deleted; all other changes are stored. `withheld`:
    enabled settings that are not sent to servers, because the pool does not allow their agent."""

    changes = ManifestChangeSerializer(many=True)
    refused = ManifestProblemSerializer(many=True)
    withheld = serializers.ListField(child=serializers.CharField())


class ManifestRefusal(ApiProblem):
    """Nothing was stored. 403 where a right is missing for one of them."""

    default_code = "rejected"

    def __init__(self, rejected: Rejected) -> None:
        problems = rejected.problems
        super().__init__(
            _("The file was rejected; nothing was stored."),
            where=problems[0].path if problems else "",
            what_to_do=_("Correct the errors listed in `problems` and apply the file again."),
            problems=[_problem(each) for each in problems],
        )
        if any(each.forbidden for each in problems):
            self.status_code = status.HTTP_403_FORBIDDEN
            self.word = "permission_denied"


class Manifests(Audited, APIView):
    # JSON around a file: every line end is two characters.
    body_limit = 2 * LARGEST_BYTES
    action_permissions: dict[str, tuple[str, ...]] = {"get": SEE, "post": SEE}
    audit_action = APPLY

    @extend_schema(
        operation_id="manifests_export",
        parameters=[OpenApiParameter("key", OpenApiTypes.STR, many=True, description="Keys of settings.")],
        responses=ManifestTextSerializer,
    )
    def get(self, request: Request) -> Response:
        """All settings, or the named ones with their dependencies. Does not include whether a setting is
        enabled."""
        keys = request.query_params.getlist("key")[:MOST_KEYS]
        try:
            return Response({"text": dump(document(keys))})
        except UnknownSettings as error:
            raise exceptions.NotFound(str(error)) from error

    @extend_schema(
        operation_id="manifests_apply",
        request=ManifestAskSerializer,
        responses=ManifestOutcomeSerializer,
        extensions=performing_by({APPLY: {}}),
    )
    def post(self, request: Request) -> Response:
        """Applies the whole file or nothing. Objects that it does not name stay, unless `prune` is set. 400
        with `problems`, each with its position in the file; 403 if a permission is missing."""
        ask = ManifestAskSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        asked = ask.validated_data
        how = Manner(asked["dry_run"], asked["prune"], checked=True, seconds=WAITS_SECONDS)
        try:
            parsed = document_of(load(asked["text"].encode("utf-8", "replace")))
            outcome = apply(parsed, request.user, timezone.now(), how)
        except Rejected as rejected:
            raise ManifestRefusal(rejected) from rejected
        changes = [
            {"path": each.path, "old": each.old, "new": each.new, "text": str(each)}
            for each in outcome.changes
        ]
        refused = [_problem(each) for each in outcome.refused]
        return Response({"changes": changes, "refused": refused, "withheld": outcome.withheld})


def _problem(problem: ManifestProblem) -> dict[str, str]:
    return {"path": problem.path, "text": problem.text}
