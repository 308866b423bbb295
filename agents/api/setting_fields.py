"""A launch setting as JSON: what people choose, its schedule inside, and the facts of the MA."""

from typing import Any

from django.core.exceptions import ValidationError as ModelError
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _
from rest_framework import serializers

from agents.api.schedules import ScheduleSerializer
from agents.models import Activation, Destination, LaunchSetting, Pool
from agents.models.activation import OPEN_ACTIVATIONS
from agents.settings.enable import check_discarding, check_unmasking
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
    "parameters",
    "masked_properties",
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
    "group",
    "provision_state",
    "provision_problem",
    "provisioned_at",
    "created_at",
    "activation",
)


def settings_with_relations() -> QuerySet[LaunchSetting]:
    """With all that `SettingSerializer` tells of each: one question for any number of them."""
    started = Activation.objects.filter(setting=OuterRef("pk"), state__in=OPEN_ACTIVATIONS).order_by()
    related = LaunchSetting.objects.select_related(
        "pool", "destination", "disabled_by", "schedule", "membership__group"
    )
    return related.annotate(open_activation=Subquery(started.values("pk")[:1])).order_by("key")


class SettingSerializer(CheckedModelSerializer[LaunchSetting]):
    pool = serializers.SlugRelatedField(slug_field="name", queryset=Pool.objects.all())
    destination = serializers.SlugRelatedField(
        slug_field="name", queryset=Destination.objects.all(), required=False, allow_null=True
    )
    schedule = ScheduleSerializer(required=False, allow_null=True)
    group = serializers.SerializerMethodField(help_text="The scheduled group it is a member of.")
    # No CharField with a default: an answer to PATCH would leave it out where it is empty.
    disabled_by = serializers.SerializerMethodField()
    disabled_reason = ReasonText()
    disabled_reason_code = ReasonCode("disabled_reason")
    disabled_reason_params = ReasonParams("disabled_reason")
    activation = serializers.SerializerMethodField(help_text="The open activation of an enabled setting.")

    class Meta:
        model = LaunchSetting
        fields = CHOSEN + MACHINE_FACTS
        read_only_fields = MACHINE_FACTS

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and not {"n", "N", "breaker_n"}.isdisjoint(data):
            name = next(name for name in ("n", "N", "breaker_n") if name in data)
            text = _(
                "N cannot be chosen: it is derived, N = M / 3 rounded down, at least 1. Set M (breaker_m)."
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
