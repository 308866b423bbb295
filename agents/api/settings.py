"""/api/v1/settings/: launch settings as JSON (what people choose, the schedule inside, the facts of the
MA), and what people do with them."""

from dataclasses import asdict
from typing import Any

from django.core.exceptions import ValidationError as ModelError
from django.db.models import OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.fields.json import KeyTransform
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from agents.api.activations import ActivationSerializer, RunSerializer
from agents.api.schedules import ScheduleSerializer, WindowSerializer, store_schedule, windows_answer
from agents.api.servers_pools import check_destination, check_pool, check_right
from agents.models import Activation, Destination, LaunchSetting, Pool, ServerStop, Window
from agents.models.activation import OPEN_ACTIVATIONS
from agents.models.labels import LONGEST_PART, wanted_in
from agents.pools.rights import check_anywhere
from agents.provisioning.queue_counts import queue_figures
from agents.provisioning.topology import save_setting
from agents.settings.enable import check_discarding, check_unmasking
from agents.settings.operations import (
    DisableSetting,
    EnableSetting,
    LabelSetting,
    RemoveSetting,
    ResumeRun,
    RetryMessage,
    RunSetting,
    StartOnServer,
    StopOnServer,
    StopSetting,
)
from console.audit.forms import RecordedRows
from console.audit.saves import Saving
from console.filters import SwitchFilter
from console.operations.operation import perform
from console.operations.rest import Answer, OperationsMixin, as_problems, performing
from console.rest.serializers import CheckedModelSerializer, ReasonCode, ReasonParams, ReasonText

DERIVED = ("n", "N", "breaker_n")
# The schedule is a row of its own, stored in the same transaction.
CHOSEN = (
    "key",
    "agent",
    "kind",
    "timing",
    "spread",
    "pool",
    "destination",
    "schedule",
    "mode",
    "concurrency",
    "breaker_m",
    "count_once",
    "try_one_first",
    "drain_idle_seconds",
    "drain_wait_seconds",
    "drain_limit_messages",
    "drain_limit_minutes",
    "restart_seconds",
    "grace_seconds",
    "handling_timeout_seconds",
    "transaction_timeout_seconds",
    "dups_ok_messages",
    "dups_ok_seconds",
    "acknowledgement_timeout_seconds",
    "acknowledgement_property",
    "committed_destination",
    "rolled_back_destination",
    "ordered",
    "blocked_seconds",
    "after_last",
    "exception_destination",
    "duplicate_key",
    "duplicate_window_seconds",
    "isolate",
    "child_memory_mb",
    "retention_days",
    "goal_seconds",
    "goal_percent",
    "parameters",
    "masked_properties",
    "labels",
    "description",
)
MACHINE_FACTS = (
    "enabled",
    "state_since",
    "disabled_reason",
    "disabled_reason_code",
    "disabled_reason_params",
    "disabled_by",
    "disabled_ticket",
    "disabled_until",
    "hold",
    "held_by",
    "group",
    "provision_state",
    "provision_problem",
    "provisioned_at",
    "created_at",
    "activation",
    "stopped_on",
)


def settings_with_relations() -> QuerySet[LaunchSetting]:
    """With all that `SettingSerializer` tells of each: two questions for any number of them."""
    started = Activation.objects.filter(setting=OuterRef("pk"), state__in=OPEN_ACTIVATIONS).order_by()
    related = LaunchSetting.objects.select_related(
        "pool", "destination", "disabled_by", "schedule", "membership__group"
    )
    stops = ServerStop.objects.select_related("server", "by")
    related = related.prefetch_related(Prefetch("server_stops", stops))
    return related.annotate(open_activation=Subquery(started.values("pk")[:1])).order_by("key")


class ServerStopSerializer(serializers.ModelSerializer[ServerStop]):
    server = serializers.SlugRelatedField[Any](slug_field="name", read_only=True)
    by = serializers.SlugRelatedField[Any](slug_field="username", read_only=True, allow_null=True)

    class Meta:
        model = ServerStop
        fields = ("server", "by", "reason", "since")
        read_only_fields = fields


class SettingSerializer(CheckedModelSerializer[LaunchSetting]):
    pool = serializers.SlugRelatedField(slug_field="name", queryset=Pool.objects.all())
    destination = serializers.SlugRelatedField(
        slug_field="name", queryset=Destination.objects.all(), required=False, allow_null=True
    )
    schedule = ScheduleSerializer(required=False, allow_null=True)
    labels = serializers.DictField(
        child=serializers.CharField(allow_blank=True, max_length=LONGEST_PART),
        required=False,
        help_text="Keys with values; an empty value is a label without one.",
    )
    group = serializers.SerializerMethodField(help_text="The scheduled group that the setting belongs to.")
    # No CharField with a default: an answer to PATCH would leave it out where it is empty.
    disabled_by = serializers.SerializerMethodField()
    disabled_reason = ReasonText()
    disabled_reason_code = ReasonCode("disabled_reason")
    disabled_reason_params = ReasonParams("disabled_reason")
    activation = serializers.SerializerMethodField(
        help_text="The open activation of the setting, if enabled."
    )
    stopped_on = ServerStopSerializer(source="server_stops", many=True, read_only=True)

    class Meta:
        model = LaunchSetting
        fields = CHOSEN + MACHINE_FACTS
        read_only_fields = MACHINE_FACTS

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and not {"n", "N", "breaker_n"}.isdisjoint(data):
            name = next(name for name in ("n", "N", "breaker_n") if name in data)
            text = _(
                "N cannot be set: it is derived from M (N = M / 3, rounded down, at least 1). Set M "
                "(breaker_m)."
            )
            raise serializers.ValidationError({name: text})
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The schedule has rules of its own, which are looked at when it is stored."""
        own = {name: value for name, value in attrs.items() if name != "schedule"}
        super().validate(own)
        if "after_last" in own:
            try:
                check_discarding(self.context["request"].user, self.instance, own["after_last"])
            except ModelError as error:
                raise serializers.ValidationError({"after_last": error.messages}) from error
        if self.instance is not None and "masked_properties" in own:
            try:
                check_unmasking(self.context["request"].user, self.instance, own["masked_properties"])
            except ModelError as error:
                raise serializers.ValidationError({"masked_properties": error.messages}) from error
        return attrs

    def get_group(self, setting: LaunchSetting) -> str | None:
        member = getattr(setting, "membership", None)
        return member.group.name if member else None

    def get_disabled_by(self, setting: LaunchSetting) -> str | None:
        return setting.disabled_by.get_username() if setting.disabled_by else None

    def get_activation(self, setting: LaunchSetting) -> str | None:
        pk = getattr(setting, "open_activation", None) if setting.enabled else None
        return str(pk) if pk else None


class SettingFilter(filters.FilterSet):
    enabled = SwitchFilter()
    pool = filters.CharFilter(field_name="pool__name")
    destination = filters.CharFilter(field_name="destination__name")
    label = filters.CharFilter(method="labelled", help_text="`key` or `key=value`; several by commas: all.")

    class Meta:
        model = LaunchSetting
        fields = ("enabled", "agent", "kind", "timing", "pool", "destination", "provision_state")

    def labelled(self, rows: QuerySet[LaunchSetting], _name: str, text: str) -> QuerySet[LaunchSetting]:
        for word in wanted_in(text):
            key, equals, value = word.partition("=")
            rows = rows.filter(labels__has_key=key)
            rows = rows.alias(label=KeyTransform(key, "labels")).filter(label=value) if equals else rows
        return rows


class SettingViewSet(
    RecordedRows,
    OperationsMixin,
    mixins.ListModelMixin,
    mixins.CreateModelMixin,
    mixins.RetrieveModelMixin,
    mixins.UpdateModelMixin,
    GenericViewSet[LaunchSetting],
):
    """Saving a setting stores the request; a worker then creates its address, queues and policy on the
    broker."""

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
        StopOnServer: None,
        StartOnServer: None,
        LabelSetting: None,
    }

    def for_action(self, action: str) -> LaunchSetting:
        """404, or 403 with the right that is missing."""
        setting = self.get_object()
        check_right(self.request, action, setting)
        return setting

    def create(self, request: Request, *args: Any, **options: Any) -> Response:
        """Only users who may create a setting somewhere get details of invalid fields."""
        check_anywhere(request.user, "add")
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

    @extend_schema(
        responses={204: None, 202: None},
        description=RemoveSetting.__doc__,
        extensions=performing(RemoveSetting),
    )
    def destroy(self, request: Request, key: str) -> Response:
        setting = self.get_object()
        with as_problems(f"settings/{key}"):
            done = perform(RemoveSetting, setting, request.user)
        return Response(status=status.HTTP_204_NO_CONTENT if done.is_gone else status.HTTP_202_ACCEPTED)

    @extend_schema(responses=WindowSerializer(many=True))
    @action(detail=True, methods=["get"])
    def windows(self, request: Request, key: str) -> Response:
        """Scheduled times and their results, newest first."""
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
