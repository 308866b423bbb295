"""/api/v1/settings/: launch settings, and what people do with them."""

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from agents.api.activations import ActivationSerializer, ReasonSerializer, RunSerializer
from agents.api.refusals import or_conflict
from agents.api.rights import check_destination, check_pool, check_right
from agents.api.schedules import WindowSerializer, store_schedule, windows_answer
from agents.api.setting_fields import SettingSerializer, settings_to_tell
from agents.models import Activation, LaunchSetting, Server, Window
from agents.models.activation import OPEN_ACTIVATIONS
from agents.services.resuming import resume_on_server
from agents.services.retrying import retry_now
from agents.services.rights import may_anywhere
from agents.services.setting_removal import remove_setting
from agents.services.settings import Refused, disable_setting, enable_setting
from agents.services.starting import run_now, stop_activation
from agents.services.wishes import save_setting
from console.filters import SwitchFilter
from console.reasons import said
from console.rest.serializers import BodySerializer, check_no_body


class SettingFilter(filters.FilterSet):
    enabled = SwitchFilter()
    pool = filters.CharFilter(field_name="pool__name")
    destination = filters.CharFilter(field_name="destination__name")

    class Meta:
        model = LaunchSetting
        fields = ("enabled", "agent", "kind", "timing", "pool", "destination", "provision_state")


class DisablingSerializer(ReasonSerializer):
    """`until`: then it is enabled again by itself."""

    ticket = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)
    until = serializers.DateTimeField(required=False, default=None, allow_null=True)


class EnablingSerializer(BodySerializer):
    """`try_one_first` holds for this enabling alone; without it as the setting says."""

    try_one_first = serializers.BooleanField(required=False, default=None, allow_null=True)


class ServerNameSerializer(BodySerializer):
    server = serializers.SlugRelatedField(slug_field="name", queryset=Server.objects.all())


class SettingViewSet(
    mixins.ListModelMixin,
    mixins.CreateModelMixin,
    mixins.RetrieveModelMixin,
    mixins.UpdateModelMixin,
    GenericViewSet[LaunchSetting],
):
    """Saving one stores the wish; a worker then makes address, queues and policy on the broker."""

    queryset = settings_to_tell()
    serializer_class = SettingSerializer
    lookup_field = "key"
    lookup_value_regex = "[^/]+"
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    filterset_class = SettingFilter
    # Whoever sees settings may ask; `rights` decides by action and pool.
    action_permissions = dict.fromkeys(
        (
            "create",
            "partial_update",
            "destroy",
            "enable",
            "disable",
            "run",
            "stop",
            "retry",
            "resume",
            "windows",
        ),
        ("agents.view_launchsetting",),
    )

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

    def perform_create(self, serializer: serializers.BaseSerializer[LaunchSetting]) -> None:
        self._save(serializer, LaunchSetting(), dict(serializer.validated_data))

    def perform_update(self, serializer: serializers.BaseSerializer[LaunchSetting]) -> None:
        assert serializer.instance is not None
        self._save(serializer, serializer.instance, dict(serializer.validated_data))

    @transaction.atomic
    def _save(
        self,
        serializer: serializers.BaseSerializer[LaunchSetting],
        setting: LaunchSetting,
        values: dict[str, Any],
    ) -> None:
        """Setting and schedule, both or none."""
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

    @extend_schema(responses={204: None, 202: None})
    def destroy(self, request: Request, key: str) -> Response:
        """Removes its empty queues, then itself; protocols and letters stay with the key. 409 while it is
        enabled, has not ended, is in a group, or a queue of it holds messages. 202: decided, and done within
        seconds."""
        setting = self.for_action("delete")
        with or_conflict(f"settings/{key}"):
            gone = remove_setting(setting, request.user, timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT if gone else status.HTTP_202_ACCEPTED)

    @extend_schema(request=EnablingSerializer, responses={200: ActivationSerializer, 204: None})
    @action(detail=True, methods=["post"])
    def enable(self, request: Request, key: str) -> Response:
        """Starts an activation; answers the open one when it is enabled already, and 204 where there is none:
        one that is started by its schedule begins later. 409 with the reason if refused."""
        setting, given = self.for_action("enable"), EnablingSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        with or_conflict(f"settings/{key}"):
            activation = enable_setting(setting, by=request.user, now=timezone.now(), **given.validated_data)
        return _started(activation)

    @extend_schema(request=DisablingSerializer, responses=SettingSerializer)
    @action(detail=True, methods=["post"])
    def disable(self, request: Request, key: str) -> Response:
        """Stops it on every server, with its group if it is in one; its subscription keeps gathering. Nothing
        happens when it is off already."""
        setting, given = self.for_action("disable"), DisablingSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        with or_conflict(f"settings/{key}"):
            asked = dict(given.validated_data)
            why = said(asked.pop("reason"))
            disable_setting(setting, request.user, why, timezone.now(), **asked)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=None, responses={201: ActivationSerializer})
    @action(detail=True, methods=["post"])
    def run(self, request: Request, key: str) -> Response:
        """Starts what is otherwise started by its schedule, or a standalone agent that ended. 409 if
        refused."""
        setting = self.for_action("run")
        check_no_body(request)
        with or_conflict(f"settings/{key}"):
            activation = run_now(setting, by=request.user, now=timezone.now())
        return Response(ActivationSerializer(activation).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=ReasonSerializer, responses={200: ActivationSerializer})
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, key: str) -> Response:
        """Stops the activation that goes on; the setting stays enabled. 409 where nothing goes on, or only
        disabling stops it."""
        setting, given = self.for_action("stop"), ReasonSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        with or_conflict(f"settings/{key}"):
            activation = _going_on(setting)
            stop_activation(activation, request.user, said(given.validated_data["reason"]), timezone.now())
        activation.refresh_from_db()
        return Response(ActivationSerializer(activation).data)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, key: str) -> Response:
        """Another attempt at once of the message that blocks an ordered subscription. 409 if refused."""
        setting = self.for_action("run")
        check_no_body(request)
        with or_conflict(f"settings/{key}"):
            retry_now(setting, request.user, timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=ServerNameSerializer, responses={201: RunSerializer})
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, key: str) -> Response:
        """A new run on the server whose run tripped alone: its counts begin anew. 409 if refused."""
        setting, given = self.for_action("enable"), ServerNameSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        with or_conflict(f"settings/{key}"):
            run = resume_on_server(setting, given.validated_data["server"], request.user, timezone.now())
        return Response(RunSerializer(run).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses=WindowSerializer(many=True))
    @action(detail=True, methods=["get"])
    def windows(self, request: Request, key: str) -> Response:
        """What was due and what became of it, newest first."""
        return windows_answer(self, Window.objects.filter(schedule__setting=self.get_object()))


def _going_on(setting: LaunchSetting) -> Activation:
    """Raises Refused."""
    activation = setting.activations.select_related("setting").filter(state__in=OPEN_ACTIVATIONS).first()
    if activation is None:
        raise Refused("nothing_runs", _("No activation of it goes on."), _("Nothing is to be done."))
    return activation


def _started(activation: Activation | None) -> Response:
    if activation is None:
        return Response(status=status.HTTP_204_NO_CONTENT)
    return Response(ActivationSerializer(activation).data)
