"""/api/v1/health/: the state of every component and server, as the page shows it; /api/v1/bulk/: many
settings at once; /api/v1/commands/: what a remote command can do."""

from dataclasses import asdict
from functools import cache
from typing import Any

from django.urls import path
from django.utils import timezone, translation
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.pages.settings import VIEW as VIEW_SETTINGS
from agents.pools.rights import check_anywhere
from agents.settings.bulk import MOST_AT_ONCE, RIGHTS, VERBS, Fate, carry_out, foresee
from agents.settings.operations import LabelSetting
from console.audit.refusals import Audited
from console.operations.rest import as_problems, performing_by
from console.rest.commands import VERSION, commands_of
from console.rest.lists import asked_in
from console.rest.serializers import BodySerializer, QuerySerializer
from contract import __version__
from ma_site.pages.bulk import ACTION
from ma_site.pages.health import VIEW, components, overall, server_parts
from ma_site.pages.parts import DEGRADED, DOWN, OK
from ma_site.pages.parts import STATES as PART_STATES
from ma_site.pages.table import LONGEST, STATES, Selection, setting_rows


class HealthPartSerializer(serializers.Serializer[Any]):
    """`since`: last time it was healthy, or start of the problem. `about`: path of its page."""

    name = serializers.CharField()
    state = serializers.ChoiceField(PART_STATES)
    says = serializers.CharField()
    what_to_do = serializers.CharField(source="todo")
    since = serializers.DateTimeField(allow_null=True)
    about = serializers.CharField(source="url")


class ComponentSerializer(HealthPartSerializer):
    """`component`: code of the component; there may be several of `records`."""

    component = serializers.CharField()


class HealthSerializer(serializers.Serializer[Any]):
    """`state`: the worst state of the components; a missing server makes it degraded. `version`: of the
    site."""

    version = serializers.CharField()
    state = serializers.ChoiceField([OK, DEGRADED, DOWN])
    components = ComponentSerializer(many=True)
    servers = HealthPartSerializer(many=True)


class Health(APIView):
    """Checks the broker and Redis. For frequent monitoring use /healthz/, which does not."""

    action_permissions: dict[str, tuple[str, ...]] = {"get": (VIEW,)}

    @extend_schema(operation_id="health", responses=HealthSerializer)
    def get(self, request: Request) -> Response:
        now = timezone.now()
        found, servers = components(now), server_parts(now)
        state = overall([part for _code, part in found], servers)
        shown = [{"component": code, **HealthPartSerializer(part).data} for code, part in found]
        return Response(
            {
                "version": __version__,
                "state": state,
                "components": shown,
                "servers": HealthPartSerializer(servers, many=True).data,
            }
        )


# -- many settings at once -----------------------------------------------------------------------------------


class BulkQuery(QuerySerializer):
    """Selects settings as their list does. `label`: `key` or `key=value`; several by commas: all. `add` and
    `remove` only for `label`."""

    action = serializers.ChoiceField(list(VERBS), required=False, default="enable")
    state = serializers.ChoiceField(STATES, required=False, default="")
    label: Any = serializers.CharField(required=False, default="", max_length=LONGEST)
    pool = serializers.CharField(required=False, default="", max_length=LONGEST)
    destination = serializers.CharField(required=False, default="", max_length=LONGEST)
    q = serializers.CharField(required=False, default="", max_length=LONGEST)
    add = LabelSetting.inputs["add"].rest_field()
    remove = LabelSetting.inputs["remove"].rest_field()


class BulkBody(BodySerializer):
    """`settings`: the keys that the pre-flight has shown, at most 500. The other fields are those of the
    action for one setting."""

    action = serializers.ChoiceField(list(VERBS))
    settings = serializers.ListField(
        child=serializers.CharField(max_length=61), allow_empty=False, max_length=MOST_AT_ONCE
    )

    def get_fields(self) -> dict[str, Any]:
        inputs = {name: one for operation in VERBS.values() for name, one in operation.inputs.items()}
        return super().get_fields() | {name: one.rest_field() for name, one in inputs.items()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        known = {"action", "settings", *VERBS[attrs["action"]].inputs}
        if foreign := sorted(set(self.initial_data) - known):
            text = f"Unknown field; fields of this action: {sorted(known)}."
            raise serializers.ValidationError({foreign[0]: text})
        return {name: value for name, value in attrs.items() if name in known}


class BulkItemSerializer(serializers.Serializer[Any]):
    """`result`: what would happen, or what happened. `says`: reason of a refusal, or more details."""

    key = serializers.CharField()
    result = serializers.ChoiceField(Fate.choices, source="fate")
    says = serializers.CharField()


class BulkSerializer(serializers.Serializer[Any]):
    """`operation`: id of its entries in the audit log; null: nothing was changed."""

    operation = serializers.UUIDField(allow_null=True)
    settings = BulkItemSerializer(many=True)


class Bulk(Audited, APIView):
    """Many settings at once. GET is the pre-flight; POST changes exactly the settings that it names. Each is
    checked by its own permission; a refused one does not stop the others. 403 if the user may change none."""

    audit_action = ACTION
    action_permissions = dict.fromkeys(("get", "post"), (VIEW_SETTINGS,))

    @extend_schema(operation_id="bulk_preflight", parameters=[BulkQuery], responses=BulkSerializer)
    def get(self, request: Request) -> Response:
        said = asked_in(request, BulkQuery)
        now, verb = timezone.now(), said.pop("action")
        inputs = {name: said.pop(name) for name in ("add", "remove")}
        rows = Selection.of(said).among(setting_rows(now, request.user))
        settings = sorted((row.setting for row in rows), key=lambda setting: setting.key)
        with as_problems("bulk"):
            items = foresee(verb, settings[:MOST_AT_ONCE], request.user, now, inputs)
        return Response(BulkSerializer({"operation": None, "settings": items}).data)

    @extend_schema(
        operation_id="bulk",
        request=BulkBody,
        responses=BulkSerializer,
        extensions=performing_by({each.code: {"action": verb} for verb, each in VERBS.items()}),
    )
    def post(self, request: Request) -> Response:
        body = BulkBody(data=request.data)
        body.is_valid(raise_exception=True)
        said = dict(body.validated_data)
        verb, keys = said.pop("action"), said.pop("settings")
        check_anywhere(request.user, RIGHTS[verb])
        whole, items = carry_out(verb, keys, request.user, said)
        return Response(BulkSerializer({"operation": whole, "settings": items}).data)


# -- what a remote command can do ----------------------------------------------------------------------------


class CommandQuery(QuerySerializer):
    """Default of `noun`: all nouns."""

    noun = serializers.CharField(required=False, max_length=100)


class CommandInputSerializer(serializers.Serializer[Any]):
    """`place`: path, query or body. `type` json: written as JSON. `several`: a list of values."""

    name = serializers.CharField()
    place = serializers.CharField()
    type = serializers.CharField()
    several = serializers.BooleanField()
    needed = serializers.BooleanField()
    choices = serializers.ListField(child=serializers.CharField())
    about = serializers.CharField()


class RemoteCommandSerializer(serializers.Serializer[Any]):
    """`operation`: code in the audit log; empty for reads and plain saves. `fixed`: fixed fields of the body.
    `answer`: list, object, file or none."""

    noun = serializers.CharField()
    verb = serializers.CharField()
    method = serializers.CharField()
    path = serializers.CharField()
    about = serializers.CharField()
    operation = serializers.CharField()
    inputs = CommandInputSerializer(many=True)
    fixed = serializers.DictField()
    answer = serializers.CharField()


class CommandsSerializer(serializers.Serializer[Any]):
    """`version` changes with every incompatible change for clients."""

    version = serializers.IntegerField()
    commands = RemoteCommandSerializer(many=True)


class Commands(APIView):
    """Every route for user tokens as a command, for `./ma --url`. Requires the same access as the API
    description."""

    authentication_classes = SpectacularAPIView.authentication_classes
    permission_classes = SpectacularAPIView.permission_classes

    @extend_schema(operation_id="commands", parameters=[CommandQuery], responses=CommandsSerializer)
    def get(self, request: Request) -> Response:
        noun = asked_in(request, CommandQuery).get("noun")
        found = [each for each in every_command() if noun is None or each["noun"] == noun]
        return Response({"version": VERSION, "commands": found})


@cache
def every_command() -> list[dict[str, Any]]:
    """Made once in a process: routes do not change while it runs. In English, as all commands are."""
    with translation.override("en"):
        description = SchemaGenerator().get_schema(request=None, public=True)
        return [asdict(each) for each in commands_of(description)]


urlpatterns = [
    path("bulk/", Bulk.as_view(), name="api-bulk"),
    path("health/", Health.as_view(), name="api-health"),
    path("commands/", Commands.as_view(), name="api-commands"),
]
