"""/api/v1/alerts/: what people must know, with everything that happened to it; snoozed and closed by them."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.viewsets import GenericViewSet

from alerts import text
from alerts.models import LIVE_ALERTS, Alert, AlertState, AlertTransition, Severity
from alerts.operations import CloseAlert, SnoozeAlert
from alerts.queries import narrowed
from alerts.sources import every_kind
from console.operations.rest import Answer, OperationsMixin
from console.rest.lists import ByKey, asked_in
from console.rest.serializers import QuerySerializer

MOST_ROWS = 200


class TransitionSerializer(serializers.ModelSerializer[AlertTransition]):
    by = serializers.CharField(source="by.username", read_only=True, default=None)

    class Meta:
        model = AlertTransition
        fields = ("id", "step", "value", "until", "by", "reason", "at")
        read_only_fields = fields


class AlertSerializer(serializers.ModelSerializer[Alert]):
    """`says` and `what_to_do` are in the language of the request. `about`: path of the subject's page."""

    severity = serializers.SerializerMethodField()
    setting = serializers.CharField(source="setting.key", read_only=True, default=None)
    server = serializers.CharField(source="server.name", read_only=True, default=None)
    pools = serializers.SerializerMethodField()
    says = serializers.SerializerMethodField()
    what_to_do = serializers.SerializerMethodField()
    about = serializers.SerializerMethodField()

    class Meta:
        model = Alert
        fields: tuple[str, ...] = (
            "id",
            "kind",
            "subject",
            "severity",
            "state",
            "setting",
            "server",
            "pools",
            "value",
            "says",
            "what_to_do",
            "about",
            "opened_at",
            "closed_at",
            "by_hand",
            "snoozed_until",
            "repeats",
        )
        read_only_fields = fields

    def get_severity(self, alert: Alert) -> str:
        return Severity(alert.severity).name.lower()

    def get_pools(self, alert: Alert) -> list[str]:
        return sorted(pool.name for pool in alert.pools.all())

    def get_says(self, alert: Alert) -> str:
        return text.says(alert)

    def get_what_to_do(self, alert: Alert) -> str:
        return text.what_to_do(alert)

    def get_about(self, alert: Alert) -> str:
        return text.about(alert)


class WholeAlertSerializer(AlertSerializer):
    """Includes up to 200 transitions, newest first."""

    transitions = serializers.SerializerMethodField()

    class Meta(AlertSerializer.Meta):
        fields = (*AlertSerializer.Meta.fields, "transitions")
        read_only_fields = fields

    @extend_schema_field(TransitionSerializer(many=True))
    def get_transitions(self, alert: Alert) -> Any:
        rows = alert.transitions.select_related("by").order_by("-id")[:MOST_ROWS]
        return TransitionSerializer(rows, many=True).data


class AlertQuery(QuerySerializer):
    """Filters of the list."""

    open = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="true: only open alerts, snoozed ones included; false: only closed ones.",
    )
    kind = serializers.CharField(required=False, max_length=40, default="", help_text="Alert kind.")
    pool = serializers.CharField(required=False, max_length=60, default="", help_text="Name of a pool.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        names = sorted(kind.name for kind in every_kind())
        if attrs["kind"] and attrs["kind"] not in names:
            raise serializers.ValidationError({"kind": f"Unknown kind; known kinds: {names}."})
        return attrs


@extend_schema_view(
    list=extend_schema(parameters=[AlertQuery]), retrieve=extend_schema(responses=WholeAlertSerializer)
)
class AlertViewSet(
    ByKey, OperationsMixin, mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Alert]
):
    """Newest first, in pages by key."""

    queryset = (
        Alert.objects.exclude(state=AlertState.CALM)
        .select_related("setting", "server")
        .prefetch_related("pools")
    )
    serializer_class = AlertSerializer
    lookup_value_converter = "int"
    ordering = ("-opened_at", "-id")
    operations = dict.fromkeys((SnoozeAlert, CloseAlert), Answer(WholeAlertSerializer))

    def get_serializer_class(self) -> type[AlertSerializer]:
        return AlertSerializer if self.action == "list" else WholeAlertSerializer

    def get_queryset(self) -> QuerySet[Alert]:
        rows = super().get_queryset()
        if self.action != "list":
            return rows
        wanted = asked_in(self.request, AlertQuery)
        is_open = wanted.pop("open")
        if is_open is not None:
            rows = rows.filter(state__in=LIVE_ALERTS) if is_open else rows.filter(state=AlertState.CLOSED)
        return narrowed(rows, **wanted)
