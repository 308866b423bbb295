"""/api/v1/site/: freezing the installation; freezes/: freezes of every scope; maintenance-windows/: those
that recur. Freezing a pool is among the routes of pools."""

from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from agents.freezes.operations import FreezePool, FreezeSite, UnfreezePool, UnfreezeSite, sites
from agents.freezes.queries import next_opening, open_until
from agents.freezes.rules import stands
from agents.models import Freeze, HeldStart, MaintenanceWindow, Pool, SiteIdentity
from console.audit.forms import RecordedRows
from console.filters import SwitchFilter
from console.operations.rest import Answer, OperationsMixin
from console.rest.serializers import CheckedModelSerializer

# Held starts of one freeze or window that an answer holds.
MOST = 500


class FreezeSerializer(serializers.ModelSerializer[Freeze]):
    """`pool` null: the whole installation. `ends_at` null: until it is unfrozen. `lifted_by` null: nobody
    lifted it."""

    pool = serializers.SlugRelatedField[Any](slug_field="name", read_only=True, allow_null=True)
    by = serializers.CharField(source="by_name", read_only=True)
    lifted_by = serializers.SlugRelatedField[Any](slug_field="username", read_only=True, allow_null=True)
    stands = serializers.SerializerMethodField(help_text="Whether it holds new starts now.")

    class Meta:
        model = Freeze
        fields = ("id", "pool", "by", "reason", "at", "ends_at", "lifted_at", "lifted_by", "stands")
        read_only_fields = fields

    def get_stands(self, freeze: Freeze) -> bool:
        return stands(freeze.lifted_at, freeze.ends_at, timezone.now())


class HeldStartSerializer(serializers.ModelSerializer[HeldStart]):
    """`action` and `by` only of what a user asked for. `target`: as in the audit log."""

    by = serializers.CharField(source="by_name", read_only=True)

    class Meta:
        model = HeldStart
        fields = ("kind", "target", "action", "by", "count", "first_at", "last_at", "since")
        read_only_fields = fields


class FreezeFilter(filters.FilterSet):
    stands = SwitchFilter(method="those_that_stand")
    pool = filters.CharFilter(field_name="pool__name")

    class Meta:
        model = Freeze
        fields = ("pool",)

    def those_that_stand(self, rows: Any, _name: str, value: bool) -> Any:
        now = timezone.now()
        standing = Q(lifted_at=None) & (Q(ends_at=None) | Q(ends_at__gt=now))
        return rows.filter(standing) if value else rows.exclude(standing)


class FreezeViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Freeze]):
    """Freezes by users, newest first. Maintenance windows are listed on their own."""

    queryset = Freeze.objects.select_related("pool", "lifted_by").order_by("-at", "-id")
    serializer_class = FreezeSerializer
    lookup_value_converter = "int"
    filterset_class = FreezeFilter
    action_permissions = {"held": ("agents.view_freeze",)}

    @extend_schema(responses=HeldStartSerializer(many=True), filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def held(self, request: Request, pk: int) -> Response:
        """Starts that the freeze held, the latest first, at most 500."""
        return Response(HeldStartSerializer(self.get_object().held.all()[:MOST], many=True).data)


FREEZING_POOLS = {
    FreezePool: Answer(FreezeSerializer),
    UnfreezePool: Answer(),
}


class SiteViewSet(OperationsMixin, GenericViewSet[SiteIdentity]):
    """Freezes the whole installation, whose id is 1."""

    queryset = SiteIdentity.objects.order_by("pk")
    serializer_class: Any = FreezeSerializer
    lookup_value_converter = "int"
    operations = {
        FreezeSite: Answer(FreezeSerializer),
        UnfreezeSite: Answer(),
    }

    def get_queryset(self) -> Any:
        return sites()


class MaintenanceSerializer(CheckedModelSerializer[MaintenanceWindow]):
    """`pool` null: the whole installation."""

    pool = serializers.SlugRelatedField(
        slug_field="name", queryset=Pool.objects.all(), required=False, allow_null=True
    )
    open_until = serializers.SerializerMethodField(help_text="End of the open window; null: not open.")
    next_at = serializers.SerializerMethodField(help_text="Start of the next window.")

    class Meta:
        model = MaintenanceWindow
        fields = (
            "id",
            "pool",
            "crontab",
            "time_zone",
            "minutes",
            "reason",
            "created_at",
            "open_until",
            "next_at",
        )
        read_only_fields = ("created_at", "open_until", "next_at")

    def validate_crontab(self, crontab: str) -> str:
        return " ".join(crontab.split())

    def get_open_until(self, window: MaintenanceWindow) -> datetime | None:
        return open_until(window, timezone.now())

    def get_next_at(self, window: MaintenanceWindow) -> datetime | None:
        return next_opening(window, timezone.now())


class MaintenanceViewSet(RecordedRows, viewsets.ModelViewSet[MaintenanceWindow]):
    """Recurring windows that act as a freeze."""

    queryset = MaintenanceWindow.objects.select_related("pool").order_by("pk")
    serializer_class = MaintenanceSerializer
    lookup_value_converter = "int"
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    action_permissions = {"held": ("agents.view_maintenancewindow",)}

    @extend_schema(responses=HeldStartSerializer(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def held(self, request: Request, pk: int) -> Response:
        """Starts that windows of this maintenance held, the latest first, at most 500."""
        return Response(HeldStartSerializer(self.get_object().held.all()[:MOST], many=True).data)
