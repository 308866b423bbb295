"""/api/v1/activations/: starts of settings with their runs."""

from django_filters import rest_framework as filters
from rest_framework import mixins, serializers
from rest_framework.viewsets import GenericViewSet

from agents.models import Activation, Run


class RunSerializer(serializers.ModelSerializer[Run]):
    server = serializers.CharField(source="server.name", read_only=True)

    class Meta:
        model = Run
        fields = (
            "server",
            "epoch",
            "wanted",
            "state",
            "handled",
            "failed",
            "temporary",
            "recovered",
            "restarts",
            "in_progress",
            "connected",
            "same_type",
            "same_count",
            "any_count",
            "reported_at",
            "problem",
            "created_at",
            "closed_at",
            "closing_records",
            "stored_records",
        )
        read_only_fields = fields


class ActivationSerializer(serializers.ModelSerializer[Activation]):
    setting = serializers.CharField(source="setting.key", read_only=True)
    started_by = serializers.CharField(source="started_by.username", read_only=True, default=None)
    runs = RunSerializer(many=True, read_only=True)

    class Meta:
        model = Activation
        fields = ("id", "setting", "state", "started_by", "started_at", "ended_at", "reason", "runs")
        read_only_fields = fields


class ActivationFilter(filters.FilterSet):
    setting = filters.CharFilter(field_name="setting__key")

    class Meta:
        model = Activation
        fields = ("setting", "state")


class ActivationViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Activation]):
    queryset = (
        Activation.objects.select_related("setting", "started_by")
        .prefetch_related("runs__server")
        .order_by("-started_at", "id")
    )
    serializer_class = ActivationSerializer
    lookup_value_converter = "uuid"
    filterset_class = ActivationFilter
