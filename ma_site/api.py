"""/api/v1/health/: the state of every component and server, as the page shows it; /api/v1/commands/: what a
remote command can do."""

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

from console.rest.commands import VERSION, commands_of
from console.rest.lists import asked_in
from console.rest.serializers import QuerySerializer
from ma_site.pages.health import VIEW, components, overall, server_parts
from ma_site.pages.parts import DEGRADED, DOWN, OK, STATES


class HealthPartSerializer(serializers.Serializer[Any]):
    """`since`: last time it was healthy, or start of the problem. `about`: path of its page."""

    name = serializers.CharField()
    state = serializers.ChoiceField(STATES)
    says = serializers.CharField()
    what_to_do = serializers.CharField(source="todo")
    since = serializers.DateTimeField(allow_null=True)
    about = serializers.CharField(source="url")


class ComponentSerializer(HealthPartSerializer):
    """`component`: code of the component; there may be several of `records`."""

    component = serializers.CharField()


class HealthSerializer(serializers.Serializer[Any]):
    """`state`: the worst state of the components; a missing server makes it degraded."""

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
                "state": state,
                "components": shown,
                "servers": HealthPartSerializer(servers, many=True).data,
            }
        )


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
    path("health/", Health.as_view(), name="api-health"),
    path("commands/", Commands.as_view(), name="api-commands"),
]
