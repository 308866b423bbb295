"""/api/v1/trips/: what the breaker switched off, on what evidence, what was done, and who was told."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.viewsets import GenericViewSet

from agents import hooks
from agents.models import BreakerTrip, Interruption
from agents.pages.trips import effects_for
from console.rest.lists import ByKey, asked_in
from console.rest.serializers import QuerySerializer

MOST_ROWS = 200


class InterruptionSerializer(serializers.ModelSerializer[Interruption]):
    """`effective`: the interruption belonged to the newest epoch of its server. `evidence`: ids of
    protocols."""

    server = serializers.CharField(source="server.name", read_only=True)
    activation = serializers.UUIDField(source="activation_uuid", read_only=True)

    class Meta:
        model = Interruption
        fields = (
            "id",
            "server",
            "activation",
            "epoch",
            "effective",
            "reason",
            "limit_m",
            "same_type",
            "same_count",
            "any_count",
            "evidence",
            "occurred_at",
            "received_at",
        )
        read_only_fields = fields


class TripSerializer(serializers.ModelSerializer[BreakerTrip]):
    setting = serializers.CharField(source="setting.key", read_only=True)
    group = serializers.SerializerMethodField()
    ended_by = serializers.SerializerMethodField()
    effects = serializers.SerializerMethodField()

    class Meta:
        model = BreakerTrip
        fields: tuple[str, ...] = (
            "id",
            "setting",
            "group",
            "activation",
            "reason",
            "exception_type",
            "quorum",
            "effects",
            "at",
            "ended_at",
            "ended_by",
            "reopened",
        )
        read_only_fields = fields

    @extend_schema_field(serializers.JSONField())
    def get_effects(self, trip: BreakerTrip) -> Any:
        return effects_for(self.context["request"].user, trip)

    def get_group(self, trip: BreakerTrip) -> str | None:
        return trip.group.name if trip.group else None

    def get_ended_by(self, trip: BreakerTrip) -> str | None:
        return trip.ended_by.get_username() if trip.ended_by else None


class WholeTripSerializer(TripSerializer):
    """Includes up to 200 interruptions and notices, newest first."""

    interruptions = serializers.SerializerMethodField()
    notices = serializers.SerializerMethodField()

    class Meta(TripSerializer.Meta):
        fields = (*TripSerializer.Meta.fields, "interruptions", "notices")
        read_only_fields = fields

    @extend_schema_field(InterruptionSerializer(many=True))
    def get_interruptions(self, trip: BreakerTrip) -> Any:
        rows = trip.interruptions.select_related("server").order_by("-received_at")[:MOST_ROWS]
        return InterruptionSerializer(rows, many=True).data

    @extend_schema_field({"type": "array", "items": {"$ref": "#/components/schemas/Notice"}})
    def get_notices(self, trip: BreakerTrip) -> Any:
        return [row for rows in hooks.trip_notices(self.context, trip) for row in rows]


class TripQuery(QuerySerializer):
    """Filters of the list."""

    setting = serializers.CharField(
        source="setting__key", required=False, max_length=61, help_text="Key of a setting."
    )
    open = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="true: only trips that still disable their setting; false: only ended trips.",
    )


@extend_schema_view(
    list=extend_schema(parameters=[TripQuery]), retrieve=extend_schema(responses=WholeTripSerializer)
)
class TripViewSet(ByKey, mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[BreakerTrip]):
    """Newest first, in pages by key. A trip ends when an operator enables the setting."""

    queryset = BreakerTrip.objects.select_related("setting", "group", "ended_by")
    lookup_value_converter = "int"
    ordering = ("-at", "-id")

    def get_serializer_class(self) -> type[TripSerializer]:
        return WholeTripSerializer if self.action == "retrieve" else TripSerializer

    def get_queryset(self) -> QuerySet[BreakerTrip]:
        rows = super().get_queryset()
        if self.action != "list":
            return rows
        wanted = asked_in(self.request, TripQuery)
        is_open = wanted.pop("open")
        if is_open is not None:
            wanted["ended_at__isnull"] = is_open
        return rows.filter(**wanted)
