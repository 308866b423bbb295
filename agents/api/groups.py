"""/api/v1/groups/: scheduled groups, their members in order, and what people do with them."""

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError as ModelError
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from agents.api.schedules import ScheduleSerializer, WindowSerializer, store_schedule, windows_answer
from agents.api.servers_pools import check_group
from agents.groups.members import save_members
from agents.groups.operations import (
    DeleteGroup,
    DisableGroup,
    EnableGroup,
    MoveMember,
    RunGroup,
    StopGroup,
)
from agents.models import (
    GroupActivation,
    GroupActivationState,
    LaunchSetting,
    ScheduledGroup,
    Window,
)
from console.audit.forms import RecordedRows
from console.audit.saves import Saving
from console.operations.operation import perform
from console.operations.rest import Answer, OperationsMixin, as_problems, performing
from console.rest.serializers import (
    CheckedModelSerializer,
    ReasonCode,
    ReasonParams,
    ReasonText,
)

FACTS = (
    "enabled",
    "state_since",
    "disabled_reason",
    "disabled_reason_code",
    "disabled_reason_params",
    "disabled_by",
    "created_at",
    "activation",
)


class GroupSerializer(CheckedModelSerializer[ScheduledGroup]):
    """`members`: keys of settings, in the order of their runs."""

    members = serializers.ListField(
        child=serializers.CharField(max_length=61), required=False, max_length=200
    )
    schedule = ScheduleSerializer(required=False, allow_null=True)
    disabled_reason = ReasonText()
    disabled_reason_code = ReasonCode("disabled_reason")
    disabled_reason_params = ReasonParams("disabled_reason")
    disabled_by = serializers.SerializerMethodField()
    activation = serializers.SerializerMethodField(help_text="The group run in progress.")

    class Meta:
        model = ScheduledGroup
        fields = ("name", "description", "members", "schedule", *FACTS)
        read_only_fields = FACTS

    def get_disabled_by(self, group: ScheduledGroup) -> str | None:
        return group.disabled_by.get_username() if group.disabled_by else None

    def get_activation(self, group: ScheduledGroup) -> str | None:
        running = group.activations.filter(state=GroupActivationState.RUNNING)
        pk = running.values_list("pk", flat=True).first() if group.enabled else None
        return str(pk) if pk else None

    def to_representation(self, group: ScheduledGroup) -> dict[str, Any]:
        schedule = getattr(group, "schedule", None)
        keys = [member.setting.key for member in group.members.all()]
        own = ("name", "description", "enabled", "state_since", "created_at")
        return {name: getattr(group, name) for name in own} | {
            "disabled_reason": str(group.disabled_reason),
            "disabled_reason_code": group.disabled_reason.code,
            "disabled_reason_params": group.disabled_reason.params_as_json(),
            "members": keys,
            "schedule": self.fields["schedule"].to_representation(schedule) if schedule else None,
            "disabled_by": self.get_disabled_by(group),
            "activation": self.get_activation(group),
        }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Members and schedule have rules of their own, which are looked at when they are stored."""
        super().validate(
            {name: value for name, value in attrs.items() if name not in ("members", "schedule")}
        )
        if self.instance is not None and attrs.get("name", self.instance.name) != self.instance.name:
            raise serializers.ValidationError({"name": "The name cannot be changed."})
        return attrs


class PassSerializer(serializers.ModelSerializer[GroupActivation]):
    """A group run: `plan` as fixed at the start, `step` the index of the running member."""

    group = serializers.CharField(source="group.name", read_only=True)
    started_by = serializers.CharField(source="started_by.username", read_only=True, default=None)
    reason = ReasonText()
    reason_code = ReasonCode("reason")
    reason_params = ReasonParams("reason")

    class Meta:
        model = GroupActivation
        fields = (
            "id", "group", "state", "plan", "step", "started_by", "started_at", "ended_at", "reason",
            "reason_code", "reason_params",
        )  # fmt: skip
        read_only_fields = fields


class GroupViewSet(
    RecordedRows,
    OperationsMixin,
    mixins.ListModelMixin,
    mixins.CreateModelMixin,
    mixins.RetrieveModelMixin,
    mixins.UpdateModelMixin,
    GenericViewSet[ScheduledGroup],
):
    """Requires the permission for every member: a group is enabled and run as a whole."""

    queryset = (
        ScheduledGroup.objects.select_related("disabled_by", "schedule")
        .prefetch_related("members__setting")
        .order_by("name")
    )
    serializer_class = GroupSerializer
    lookup_field = "name"
    lookup_value_regex = "[^/]+"
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    action_permissions = dict.fromkeys(
        ("create", "partial_update", "destroy", "windows"), ("agents.view_scheduledgroup",)
    )
    removal = DeleteGroup
    operations = {
        EnableGroup: None,
        DisableGroup: None,
        RunGroup: Answer(PassSerializer, status.HTTP_201_CREATED),
        StopGroup: None,
        MoveMember: None,
    }

    def for_action(self, action: str) -> ScheduledGroup:
        group = self.get_object()
        check_group(self.request, action, group)
        return group

    def partial_update(self, request: Request, *args: Any, **options: Any) -> Response:
        group = self.for_action("edit")
        with as_problems(f"groups/{group.name}"):
            return super().partial_update(request, *args, **options)

    def create(self, request: Request, *args: Any, **options: Any) -> Response:
        given = request.data.get("members") if isinstance(request.data, dict) else None
        self._check_members(given if isinstance(given, list) else [])
        return super().create(request, *args, **options)

    def perform_update(self, serializer: Any) -> None:
        if "members" in serializer.validated_data:
            self._check_members(serializer.validated_data["members"])
        super().perform_update(serializer)

    def _check_members(self, keys: Sequence[Any]) -> None:
        """The right to edit each setting that shall be in it."""
        named = LaunchSetting.objects.filter(key__in=[key for key in keys if isinstance(key, str)])
        check_group(self.request, "edit", ScheduledGroup(), list(named))

    def store(self, serializer: serializers.BaseSerializer[ScheduledGroup], save: Saving) -> None:
        """Group, members and schedule: all or none."""
        group, values = serializer.instance or ScheduledGroup(), dict(serializer.validated_data)
        now, new = timezone.now(), group.pk is None
        members, has_schedule = values.pop("members", None), "schedule" in values
        schedule = values.pop("schedule", None)
        for name, value in values.items():
            setattr(group, name, value)
        if not new:  # so that nobody deletes it meanwhile
            ScheduledGroup.objects.select_for_update(no_key=True).get(pk=group.pk)
        # Whether it is enabled is written by others.
        group.save(update_fields=None if new else ["description"])
        if members is not None:
            try:
                save_members(group, members, self.request.user, now)
            except ModelError as error:
                raise serializers.ValidationError(serializers.as_serializer_error(error)) from error
        if has_schedule:
            store_schedule(group, schedule, self.request.user, partly=not new)
        serializer.instance = self.get_queryset().get(pk=group.pk)

    @extend_schema(responses={204: None}, description=DeleteGroup.__doc__, extensions=performing(DeleteGroup))
    def destroy(self, request: Request, name: str) -> Response:
        with as_problems(f"groups/{name}"):
            perform(DeleteGroup, self.get_object(), request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(responses=WindowSerializer(many=True))
    @action(detail=True, methods=["get"])
    def windows(self, request: Request, name: str) -> Response:
        """Scheduled times and their results, newest first."""
        return windows_answer(self, Window.objects.filter(schedule__group=self.get_object()))
