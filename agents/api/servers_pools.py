"""/api/v1/servers/, server-tokens/, pools/, destinations/, and grants/: rights in one pool."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.contrib.auth.models import Group
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from agents.api.freezes import FREEZING_POOLS
from agents.destinations.operations import AdoptPolicy, ApplyPolicy
from agents.destinations.policies import mark_of, policy_lines
from agents.models import (
    Destination,
    FoundPolicy,
    LaunchSetting,
    OfferedAgent,
    Pool,
    PoolGrant,
    ScheduledGroup,
    Server,
    ServerToken,
)
from agents.models.pool import LONGEST_AGENT_NAME, MOST_ALLOWED_AGENTS
from agents.pools.rights import may_create_in, may_in_pool, may_subscribe, missing, why_not, why_not_group
from agents.provisioning.topology import save_destination
from agents.servers.operations import Cordon, Drain, RemoveServer, RevokeServerToken, Uncordon
from agents.settings.pools import save_pool
from console.audit.forms import RecordedRows
from console.audit.saves import Saving
from console.operations.operation import perform
from console.operations.rest import OperationsMixin, as_problems, performing
from console.rest.errors import Forbidden
from console.rest.serializers import CheckedModelSerializer


class OfferedAgentSerializer(serializers.ModelSerializer[OfferedAgent]):
    class Meta:
        model = OfferedAgent
        fields = ("name", "kind", "version", "summary", "seen_at")
        read_only_fields = fields


class ServerSerializer(serializers.ModelSerializer[Server]):
    state = serializers.SerializerMethodField()
    duty_by = serializers.SerializerMethodField()
    pools: serializers.SlugRelatedField[Pool] = serializers.SlugRelatedField(
        slug_field="name", many=True, read_only=True
    )
    agents = OfferedAgentSerializer(source="offered_agents", many=True, read_only=True)
    problems = serializers.ListField(child=serializers.CharField(), read_only=True)
    problem_codes = serializers.SerializerMethodField(help_text="One code for each of `problems`.")

    class Meta:
        model = Server
        fields = (
            "name",
            "state",
            "created_at",
            "last_seen_at",
            "desired_state_taken_at",
            "boot",
            "kma_version",
            "clock_skew_seconds",
            "spool_rows",
            "spool_bytes",
            "spool_limit_bytes",
            "spool_full",
            "problems",
            "problem_codes",
            "duty",
            "duty_reason",
            "duty_since",
            "duty_until",
            "duty_by",
            "pools",
            "agents",
        )
        read_only_fields = fields

    def get_problem_codes(self, server: Server) -> list[str]:
        return [problem.code for problem in server.problems]

    def get_duty_by(self, server: Server) -> str | None:
        return server.duty_by.get_username() if server.duty_by else None

    def get_state(self, server: Server) -> str:
        return server.state(timezone.now()).value


class ServerViewSet(
    OperationsMixin, mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Server]
):
    """Create servers with ./ma manage create_server, which prints the token."""

    queryset = (
        Server.objects.select_related("duty_by").prefetch_related("pools", "offered_agents").order_by("name")
    )
    serializer_class = ServerSerializer
    lookup_field = "name"
    lookup_value_regex = "[^/]+"
    operations = dict.fromkeys((Cordon, Drain, Uncordon))
    # Whoever sees servers may ask; the operation decides.
    action_permissions = {"destroy": ("agents.view_server",)}
    removal = RemoveServer

    @extend_schema(
        responses={204: None}, description=RemoveServer.__doc__, extensions=performing(RemoveServer)
    )
    def destroy(self, request: Request, name: str) -> Response:
        with as_problems(f"servers/{name}"):
            perform(RemoveServer, self.get_object(), request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ServerTokenSerializer(serializers.ModelSerializer[ServerToken]):
    server = serializers.CharField(source="server.name", read_only=True)

    class Meta:
        model = ServerToken
        fields = ("id", "server", "created_at", "last_used_at", "revoked_at")
        read_only_fields = fields


class ServerTokenViewSet(OperationsMixin, mixins.ListModelMixin, GenericViewSet[ServerToken]):
    """Secrets are never returned."""

    queryset = ServerToken.objects.select_related("server").order_by("pk")
    serializer_class = ServerTokenSerializer
    lookup_value_converter = "int"
    operations = {RevokeServerToken: None}


class PoolSerializer(CheckedModelSerializer[Pool]):
    servers = serializers.SlugRelatedField(
        slug_field="name", many=True, queryset=Server.objects.all(), required=False, allow_empty=True
    )
    allowed_agents = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST_AGENT_NAME),
        max_length=MOST_ALLOWED_AGENTS,
        allow_null=True,
        required=False,
        help_text="Agents that settings of the pool may run. null: every agent that its servers offer; []: "
        "none.",
    )

    class Meta:
        model = Pool
        fields = ("name", "description", "servers", "allowed_agents")


class PoolViewSet(
    RecordedRows,
    OperationsMixin,
    mixins.ListModelMixin,
    mixins.CreateModelMixin,
    mixins.RetrieveModelMixin,
    mixins.UpdateModelMixin,
    GenericViewSet[Pool],
):
    """A shorter list of allowed agents stops enabled settings with other agents on the pool's servers."""

    queryset = Pool.objects.prefetch_related("servers").order_by("name")
    serializer_class = PoolSerializer
    lookup_field = "name"
    lookup_value_regex = "[^/]+"
    http_method_names = ["get", "post", "patch", "head", "options"]
    operations = FREEZING_POOLS

    def store(self, serializer: serializers.BaseSerializer[Pool], save: Saving) -> None:
        pool, values = serializer.instance or Pool(), dict(serializer.validated_data)
        servers = values.pop("servers", None)
        for name, value in values.items():
            setattr(pool, name, value)
        save.counts = save_pool(pool, self.request.user, timezone.now(), servers).counts
        serializer.instance = self.get_queryset().get(pk=pool.pk)


class FoundLineSerializer(serializers.Serializer[Any]):
    """`name`: name on the broker. `field`: field of the destination; empty for a fixed value of the MA."""

    name = serializers.CharField()
    field = serializers.CharField()
    wanted = serializers.JSONField()
    found = serializers.JSONField()
    differs = serializers.BooleanField()


class OnBrokerSerializer(serializers.Serializer[Any]):
    """The policy found on the broker, checked every minute. `differs_since` null: in sync. Send `mark` as
    `seen` to apply or adopt the policy: if it has changed since then, the request is refused."""

    seen_at = serializers.DateTimeField()
    differs_since = serializers.DateTimeField(allow_null=True)
    settings = FoundLineSerializer(many=True)
    mark = serializers.CharField()


class DestinationSerializer(CheckedModelSerializer[Destination]):
    on_broker = serializers.SerializerMethodField()
    settings: serializers.SlugRelatedField[LaunchSetting] = serializers.SlugRelatedField(
        slug_field="key", many=True, read_only=True
    )

    class Meta:
        model = Destination
        fields = (
            "name",
            "max_attempts",
            "delay_ms",
            "multiplier",
            "max_delay_ms",
            "collision_avoidance",
            "expiry_ms",
            "accept_queue_senders",
            "description",
            "settings",
            "on_broker",
        )

    @extend_schema_field(OnBrokerSerializer(allow_null=True))
    def get_on_broker(self, destination: Destination) -> dict[str, Any] | None:
        """Null if unknown: no setting subscribes to the destination, or the broker was never asked."""
        row = self.context["found_policies"].get(destination.name)
        if row is None:
            return None
        lines = policy_lines(destination, row.found)
        shown = [{**asdict(line), "differs": line.differs} for line in lines]
        found = {"seen_at": row.seen_at, "differs_since": row.differs_since, "settings": shown}
        return OnBrokerSerializer({**found, "mark": mark_of(lines)}).data


class DestinationViewSet(
    RecordedRows,
    mixins.ListModelMixin,
    mixins.CreateModelMixin,
    mixins.RetrieveModelMixin,
    mixins.UpdateModelMixin,
    GenericViewSet[Destination],
):
    """Owns the redelivery policy, which all settings of the destination share."""

    queryset = Destination.objects.prefetch_related("settings").order_by("name")
    serializer_class = DestinationSerializer
    lookup_field = "name"
    # Addresses hold points and slashes.
    lookup_value_regex = ".+?"
    http_method_names = ["get", "post", "patch", "head", "options"]

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **found_policies()}

    def store(self, serializer: serializers.BaseSerializer[Destination], save: Saving) -> None:
        destination = serializer.instance or Destination()
        for name, value in serializer.validated_data.items():
            setattr(destination, name, value)
        serializer.instance = save_destination(destination)


class DestinationPolicyViewSet(OperationsMixin, GenericViewSet[Destination]):
    """Resolves differences between the policy on the broker and in the MA. Separate from `destinations/`,
    because the name of a destination may end like a verb."""

    queryset = Destination.objects.prefetch_related("settings").order_by("name")
    serializer_class = DestinationSerializer
    lookup_field = "name"
    lookup_value_regex = ".+?"
    operations = dict.fromkeys((ApplyPolicy, AdoptPolicy))

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **found_policies()}


def found_policies() -> dict[str, Any]:
    """A row per destination at most: one query instead of one for each of a list."""
    return {"found_policies": {row.address: row for row in FoundPolicy.objects.all()}}


class GrantSerializer(CheckedModelSerializer[PoolGrant]):
    pool = serializers.SlugRelatedField(slug_field="name", queryset=Pool.objects.all())
    group = serializers.SlugRelatedField(
        slug_field="name", queryset=Group.objects.all(), help_text="A user group, not a group of settings."
    )

    class Meta:
        model = PoolGrant
        fields = (
            "id", "pool", "group", "may_edit", "may_enable", "may_disable", "may_run", "may_stop",
            "may_answer", "may_see_letters", "may_see_masked", "may_give_back", "may_edit_letters",
            "may_redirect", "may_redirect_elsewhere", "may_discard", "may_handle_waiting",
            "may_import_letters",
        )  # fmt: skip


class GrantViewSet(RecordedRows, viewsets.ModelViewSet[PoolGrant]):
    """For administrators only: grants can give any permission."""

    queryset = PoolGrant.objects.select_related("pool", "group").order_by("pool__name", "group__name")
    serializer_class = GrantSerializer
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]


# -- 403 with the right that is missing ----------------------------------------------------------------------


def check_right(request: Request, action: str, setting: LaunchSetting) -> None:
    """Raises Forbidden."""
    if reason := why_not(request.user, action, setting):
        raise _forbidden(reason, f"settings/{setting.key}")


def check_pool(request: Request, pool: Pool) -> None:
    """For a setting that is made in this pool or moved into it."""
    if not may_create_in(request.user, pool):
        raise _forbidden(missing("add", pool.name), "pool")


def check_destination(request: Request, action: str, destination: Destination) -> None:
    """`action`: add or edit, for a setting that shall subscribe to it. Raises Forbidden."""
    if not may_subscribe(request.user, action, destination):
        text = _(
            "You cannot use the destination “%(name)s”: no setting in the pools that you can edit "
            "is subscribed to it. Ask for the permission “%(permission)s”."
        )
        facts = {"name": destination.name, "permission": _("Can add destination")}
        raise _forbidden(text % facts, "destination")


def check_edit_in(request: Request, pool: Pool) -> None:
    """For what belongs to all settings of a pool. Raises Forbidden."""
    if not may_in_pool(request.user, "edit", pool.pk):
        raise _forbidden(missing("edit", pool.name), "pool")


def check_group(
    request: Request, action: str, group: ScheduledGroup, members: Sequence[LaunchSetting] | None = None
) -> None:
    """`members`: those that it shall have; without them the present ones. Raises Forbidden."""
    if reason := why_not_group(request.user, action, group, members):
        raise _forbidden(reason, f"groups/{group.name}" if group.name else "members")


def _forbidden(reason: str, where: str) -> Forbidden:
    return Forbidden(reason, where=where, what_to_do=_("Ask an administrator for this permission."))
