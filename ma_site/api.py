"""/api/v1/health/: the state of every component and server, as the page shows it."""

from typing import Any

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

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


urlpatterns = [path("health/", Health.as_view(), name="api-health")]
