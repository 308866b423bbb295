"""/api/v1/settings/: launch settings, and what people do with them."""

from dataclasses import asdict
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from agents.api.activations import ActivationSerializer, RunSerializer
from agents.api.pools import check_destination, check_pool, check_right
from agents.api.schedules import WindowSerializer, store_schedule, windows_answer
from agents.api.setting_fields import SettingSerializer, settings_with_relations
from agents.models import LaunchSetting, Window
from agents.pools.rights import may_anywhere
from agents.provisioning.queue_counts import queue_figures
from agents.provisioning.topology import save_setting
from agents.settings.operations import (
    DisableSetting,
    EnableSetting,
    RemoveSetting,
    ResumeRun,
    RetryMessage,
    RunSetting,
    StopSetting,
)
from console.audit.forms import RecordedRows
from console.audit.saves import Saving
from console.filters import SwitchFilter
from console.operations.operation import perform
from console.operations.rest import Answer, OperationsMixin, as_problems


class SettingFilter(filters.FilterSet):
    enabled = SwitchFilter()
    pool = filters.CharFilter(field_name="pool__name")
    destination = filters.CharFilter(field_name="destination__name")

    class Meta:
        model = LaunchSetting
        fields = ("enabled", "agent", "kind", "timing", "pool", "destination", "provision_state")


class SettingViewSet(
    RecordedRows,
    OperationsMixin,
    mixins.ListModelMixin,
    mixins.CreateModelMixin,
    mixins.RetrieveModelMixin,
    mixins.UpdateModelMixin,
    GenericViewSet[LaunchSetting],
):
    """Saving one stores the wish; a worker then makes address, queues and policy on the broker."""

    queryset = settings_with_relations()
    serializer_class = SettingSerializer
    lookup_field = "key"
    lookup_value_regex = "[^/]+"
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    filterset_class = SettingFilter
    # Whoever sees settings may ask; `rights` decides by action and pool.
    action_permissions = dict.fromkeys(
        ("create", "partial_update", "destroy", "windows"), ("agents.view_launchsetting",)
    )
    removal = RemoveSetting
    operations = {
        EnableSetting: Answer(ActivationSerializer, or_nothing=True),
        DisableSetting: None,
        RunSetting: Answer(ActivationSerializer, status.HTTP_201_CREATED),
        StopSetting: Answer(ActivationSerializer),
        RetryMessage: Answer(),
        ResumeRun: Answer(RunSerializer, status.HTTP_201_CREATED),
    }

    def for_action(self, action: str) -> LaunchSetting:
        """404, or 403 with the right that is missing."""
        setting = self.get_object()
        check_right(self.request, action, setting)
        return setting

    def create(self, request: Request, *args: Any, **options: Any) -> Response:
        """What is wrong with the fields is told only to those who may create one somewhere."""
        if not may_anywhere(request.user, "add"):
            raise exceptions.PermissionDenied
        return super().create(request, *args, **options)

    def partial_update(self, request: Request, *args: Any, **options: Any) -> Response:
        self.for_action("edit")
        return super().partial_update(request, *args, **options)

    def store(self, serializer: serializers.BaseSerializer[LaunchSetting], save: Saving) -> None:
        """Setting and schedule, both or none."""
        setting, values = serializer.instance or LaunchSetting(), dict(serializer.validated_data)
        new = setting.pk is None
        if "pool" in values and (new or values["pool"].pk != setting.pool_id):
            check_pool(self.request, values["pool"])
        destination = values.get("destination")
        if destination is not None and (new or destination.pk != setting.destination_id):
            check_destination(self.request, "add" if new else "edit", destination)
        has_schedule = "schedule" in values
        schedule = values.pop("schedule", None)
        for name, value in values.items():
            setattr(setting, name, value)
        save_setting(setting, by=self.request.user)
        if has_schedule:
            store_schedule(setting, schedule, self.request.user, partly=not new)
        serializer.instance = self.get_queryset().get(pk=setting.pk)

    @extend_schema(responses={204: None, 202: None}, description=RemoveSetting.__doc__)
    def destroy(self, request: Request, key: str) -> Response:
        setting = self.get_object()
        with as_problems(f"settings/{key}"):
            done = perform(RemoveSetting, setting, request.user)
        return Response(status=status.HTTP_204_NO_CONTENT if done.is_gone else status.HTTP_202_ACCEPTED)

    @extend_schema(responses=WindowSerializer(many=True))
    @action(detail=True, methods=["get"])
    def windows(self, request: Request, key: str) -> Response:
        """What was due and what became of it, newest first."""
        return windows_answer(self, Window.objects.filter(schedule__setting=self.get_object()))


# -- /api/v1/queues/<key>/: the broker's counts of subscription and dead-letter queue ------------------------


class FiguresSerializer(serializers.Serializer[Any]):
    waiting = serializers.IntegerField()
    delayed = serializers.IntegerField()
    in_delivery = serializers.IntegerField()
    consumers = serializers.IntegerField()
    dead = serializers.IntegerField()
    at = serializers.DateTimeField()


class QueueView(APIView):
    action_permissions = {"get": ("agents.view_launchsetting",)}

    @extend_schema(responses=FiguresSerializer)
    def get(self, request: Request, key: str) -> Response:
        setting = get_object_or_404(LaunchSetting, key=key)
        return Response(FiguresSerializer(asdict(queue_figures(setting, timezone.now()))).data)
