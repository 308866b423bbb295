"""/api/v1/settings/: launch settings, and switching them on and off."""

from typing import Any

from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from agents.api.activations import ActivationSerializer
from agents.api.errors import Conflict
from agents.api.rights import check_pool, check_right
from agents.api.validation import CheckedModelSerializer
from agents.models import Destination, LaunchSetting, Pool
from agents.models.activation import OPEN_ACTIVATIONS
from agents.services.rights import may_anywhere
from agents.services.settings import Refused, disable_setting, enable_setting
from agents.services.wishes import save_setting

CHOSEN = (
    "key",
    "agent",
    "timing",
    "spread",
    "pool",
    "destination",
    "mode",
    "concurrency",
    "breaker_m",
    "grace_seconds",
    "handling_timeout_seconds",
    "transaction_timeout_seconds",
    "isolate",
    "child_memory_mb",
    "parameters",
    "masked_properties",
    "description",
)
MACHINE_FACTS = (
    "enabled",
    "state_since",
    "disabled_reason",
    "disabled_by",
    "provision_state",
    "provision_problem",
    "provisioned_at",
    "created_at",
    "activation",
)


ACTIONS = ("create", "partial_update", "enable", "disable")


class SettingSerializer(CheckedModelSerializer[LaunchSetting]):
    pool = serializers.SlugRelatedField(slug_field="name", queryset=Pool.objects.all())
    destination = serializers.SlugRelatedField(slug_field="name", queryset=Destination.objects.all())
    # No CharField with a default: an answer to PATCH would leave it out where it is empty.
    disabled_by = serializers.SerializerMethodField()
    activation = serializers.SerializerMethodField(help_text="The open activation of an enabled setting.")

    class Meta:
        model = LaunchSetting
        fields = CHOSEN + MACHINE_FACTS
        read_only_fields = MACHINE_FACTS

    def get_disabled_by(self, setting: LaunchSetting) -> str | None:
        return setting.disabled_by.get_username() if setting.disabled_by else None

    def get_activation(self, setting: LaunchSetting) -> str | None:
        if not setting.enabled:
            return None
        pk = setting.activations.filter(state__in=OPEN_ACTIVATIONS).values_list("pk", flat=True).first()
        return str(pk) if pk else None


class SettingFilter(filters.FilterSet):
    pool = filters.CharFilter(field_name="pool__name")
    destination = filters.CharFilter(field_name="destination__name")

    class Meta:
        model = LaunchSetting
        fields = ("enabled", "agent", "pool", "destination", "provision_state")


class ReasonSerializer(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=2000, required=False, default="", allow_blank=True)


class SettingViewSet(
    mixins.ListModelMixin,
    mixins.CreateModelMixin,
    mixins.RetrieveModelMixin,
    mixins.UpdateModelMixin,
    GenericViewSet[LaunchSetting],
):
    """Saving one stores the wish; a worker then makes address, queues and policy on the broker."""

    queryset = LaunchSetting.objects.select_related("pool", "destination", "disabled_by").order_by("key")
    serializer_class = SettingSerializer
    lookup_field = "key"
    lookup_value_regex = "[^/]+"
    http_method_names = ["get", "post", "patch", "head", "options"]
    filterset_class = SettingFilter
    # Whoever sees settings may ask; `rights` decides by action and pool.
    action_permissions = dict.fromkeys(ACTIONS, ("agents.view_launchsetting",))

    def create(self, request: Request, *args: Any, **options: Any) -> Response:
        """What is wrong with the fields is told only to those who may create one somewhere."""
        if not may_anywhere(request.user, "add"):
            raise exceptions.PermissionDenied
        return super().create(request, *args, **options)

    def partial_update(self, request: Request, *args: Any, **options: Any) -> Response:
        check_right(request, "edit", self.get_object())
        return super().partial_update(request, *args, **options)

    def perform_create(self, serializer: serializers.BaseSerializer[LaunchSetting]) -> None:
        check_pool(self.request, serializer.validated_data["pool"])
        serializer.instance = save_setting(LaunchSetting(**serializer.validated_data), by=self.request.user)

    def perform_update(self, serializer: serializers.BaseSerializer[LaunchSetting]) -> None:
        setting = serializer.instance
        assert setting is not None
        pool = serializer.validated_data.get("pool", setting.pool)
        if pool != setting.pool:
            check_pool(self.request, pool)
        for name, value in serializer.validated_data.items():
            setattr(setting, name, value)
        save_setting(setting, by=self.request.user)

    def for_action(self, action: str) -> LaunchSetting:
        setting = self.get_object()
        check_right(self.request, action, setting)
        return setting

    @extend_schema(request=None, responses=ActivationSerializer)
    @action(detail=True, methods=["post"])
    def enable(self, request: Request, key: str) -> Response:
        """Starts an activation; answers the open one when it is enabled already. 409 with the reason if refused."""
        try:
            activation = enable_setting(self.for_action("enable"), by=request.user, now=timezone.now())
        except Refused as refused:
            raise Conflict(
                refused.reason, code=refused.code, where=f"settings/{key}", what_to_do=refused.what_to_do
            ) from refused
        return Response(ActivationSerializer(activation).data)

    @extend_schema(request=ReasonSerializer, responses=SettingSerializer)
    @action(detail=True, methods=["post"])
    def disable(self, request: Request, key: str) -> Response:
        """Stops it on every server; its subscription keeps gathering. Nothing happens when it is off already."""
        given = ReasonSerializer(data=request.data or {})
        given.is_valid(raise_exception=True)
        disable_setting(
            self.for_action("disable"), by=request.user, reason=given.validated_data["reason"], now=timezone.now()
        )
        return Response(self.get_serializer(self.get_object()).data)
