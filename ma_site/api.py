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
    """`since`: when it was last known to be well, or since when it is not. `about`: path of its page."""

    name = serializers.CharField()
    state = serializers.ChoiceField(STATES)
    says = serializers.CharField()
    what_to_do = serializers.CharField(source="todo")
    since = serializers.DateTimeField(allow_null=True)
    about = serializers.CharField(source="url")


class ComponentSerializer(HealthPartSerializer):
    """`component`: its code; of `records` there may be several."""

    component = serializers.CharField()


class HealthSerializer(serializers.Serializer[Any]):
    """`state`: the worst of the components; a server that is missing degrades it."""

    state = serializers.ChoiceField([OK, DEGRADED, DOWN])
    components = ComponentSerializer(many=True)
    servers = HealthPartSerializer(many=True)


class Health(APIView):
    """Asks the broker and Redis. For monitoring that asks often there is /healthz/, which does not."""

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
    """Without `noun`: all of them."""

    noun = serializers.CharField(required=False, max_length=100)


class CommandInputSerializer(serializers.Serializer[Any]):
    """`place`: path, query or body. `type` json: written as JSON. `several`: a list of them."""

    name = serializers.CharField()
    place = serializers.CharField()
    type = serializers.CharField()
    several = serializers.BooleanField()
    needed = serializers.BooleanField()
    choices = serializers.ListField(child=serializers.CharField())
    about = serializers.CharField()


class RemoteCommandSerializer(serializers.Serializer[Any]):
    """`operation`: its code in the audit, empty where it only looks, or saves a row. `fixed`: what the body
    says besides. `answer`: list, object, file or none."""

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
    """`version` grows when a client that knows the one before would do something else."""

    version = serializers.IntegerField()
    commands = RemoteCommandSerializer(many=True)


class Commands(APIView):
    """Every route that a person's token opens, as a command: for `./ma --url`. Who may read the description
    of the interface may read this."""

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
