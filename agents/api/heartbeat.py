"""POST /api/v1/heartbeat/: a KMA says how it is and learns what it shall run."""

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents import hooks
from agents.api.authentication import IsServer, ServerTokenAuthentication, server_of
from agents.heartbeat.heartbeats import WrongServer, accept_heartbeat, refuse_version
from console.rest.errors import Forbidden
from contract import version_3, wire
from contract.messages import Heartbeat


class HeartbeatView(APIView):
    """Requires the token of the server (`kma_…`). Bodies: `Heartbeat` and `HeartbeatReply` of
    contract/messages.py."""

    authentication_classes = [ServerTokenAuthentication]
    permission_classes = [IsServer]
    throttle_classes = []

    @extend_schema(request=OpenApiTypes.OBJECT, responses=OpenApiTypes.OBJECT, tags=["kma"])
    def post(self, request: Request) -> Response:
        version = request.data.get("version") if isinstance(request.data, dict) else None
        if isinstance(version, int):
            refuse_version(server_of(request), version)
        older = version == version_3.VERSION
        data = version_3.heartbeat(request.data) if older else request.data
        heartbeat, now = wire.load(Heartbeat, data), timezone.now()
        try:
            reply = accept_heartbeat(server_of(request), heartbeat, now)
        except WrongServer as error:
            raise Forbidden(
                str(error),
                code="other_server",
                where="server",
                what_to_do="Configure each KMA with the token of its own server.",
            ) from error
        hooks.stand_in(now)
        answer = wire.dump(reply)
        return Response(version_3.reply(answer) if older else answer)
