"""/api/v1/notice-targets/: who is notified, of one setting, of a pool or of the installation; and
/api/v1/notices/: what was sent to them."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from agents import hooks
from agents.api.servers_pools import check_edit_in, check_right
from agents.models import BreakerTrip, LaunchSetting, Pool
from alerts.models import SIGNED, Channel, LeastSeverity, Notice, NoticeState, NoticeTarget
from alerts.notices.message import name_of
from alerts.notices.operations import DeleteTarget, RenewSecret, ResendNotice, SendTest, save_target
from alerts.notices.recipients import EVERYWHERE, address_of_notice, address_of_target
from console.audit.forms import RecordedRows
from console.audit.saves import saving
from console.operations.operation import perform
from console.operations.rest import Answer, OperationsMixin, as_problems, performing
from console.rest.errors import Forbidden
from console.rest.lists import ByKey, asked_in
from console.rest.serializers import CheckedModelSerializer, QuerySerializer

# Of one trip.
MOST_ROWS = 200


class NoticeSerializer(serializers.ModelSerializer[Notice]):
    """`event`: as Standard Webhooks name it. `subject`: its trip, alert or setting, as `trip:7`."""

    event = serializers.SerializerMethodField()
    subject = serializers.SerializerMethodField()

    class Meta:
        model = Notice
        fields = (
            "id",
            "target",
            "event",
            "subject",
            "channel",
            "address",
            "state",
            "attempts",
            "next_at",
            "problem",
            "created_at",
            "sent_at",
        )
        read_only_fields = fields

    def get_event(self, notice: Notice) -> str:
        return name_of(notice)

    def get_subject(self, notice: Notice) -> str:
        if notice.transition is not None:
            return f"alert:{notice.transition.alert_id}"
        if notice.trip is not None:
            return f"trip:{notice.trip.pk}"
        return f"setting:{notice.event.setting_key}" if notice.event is not None else ""

    def to_representation(self, notice: Notice) -> dict[str, Any]:
        """Of a webhook only the host, for who may not edit the setting."""
        setting = notice.trip.setting if notice.trip else None
        shown = super().to_representation(notice)
        return shown | {"address": address_of_notice(self.context["request"].user, notice, setting)}


@hooks.trip_notices.implement
def rows_of_trip(context: Mapping[str, Any], trip: BreakerTrip) -> list[Any]:
    rows = trip.notices.select_related("target__setting", "target__pool", "trip__setting")
    rows = rows.order_by("-pk")[:MOST_ROWS]
    return list(NoticeSerializer(rows, many=True, context=dict(context)).data)


class NoticeQuery(QuerySerializer):
    """Filters of the list."""

    target = serializers.IntegerField(
        required=False, min_value=1, max_value=2**63 - 1, help_text="Number of a recipient."
    )
    channel = serializers.ChoiceField(Channel.choices, required=False)
    state = serializers.ChoiceField(NoticeState.choices, required=False)


@extend_schema_view(list=extend_schema(parameters=[NoticeQuery]))
class NoticeViewSet(
    ByKey, OperationsMixin, mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Notice]
):
    """The delivery log: newest first, in pages by key."""

    queryset = Notice.objects.select_related(
        "target__setting__pool", "target__pool", "transition", "trip__setting", "event"
    )
    serializer_class = NoticeSerializer
    lookup_value_converter = "int"
    ordering = ("-created_at", "-id")
    operations = {ResendNotice: Answer(NoticeSerializer)}

    def get_queryset(self) -> QuerySet[Notice]:
        rows = super().get_queryset()
        return rows.filter(**asked_in(self.request, NoticeQuery)) if self.action == "list" else rows


class LeastSeverityField(serializers.ChoiceField):
    """By name, as the severity of alerts."""

    def __init__(self, **options: Any) -> None:
        super().__init__([each.name.lower() for each in LeastSeverity], **options)

    def to_internal_value(self, data: Any) -> Any:
        return LeastSeverity[super().to_internal_value(data).upper()]

    def to_representation(self, value: Any) -> Any:
        return LeastSeverity(value).name.lower()


class TargetSerializer(CheckedModelSerializer[NoticeTarget]):
    """Of a setting, of a pool, or without both of the whole installation. `routing_key`: of PagerDuty alone,
    never shown."""

    setting = serializers.SlugRelatedField(
        slug_field="key", queryset=LaunchSetting.objects.all(), required=False, allow_null=True, default=None
    )
    pool = serializers.SlugRelatedField(
        slug_field="name", queryset=Pool.objects.all(), required=False, allow_null=True, default=None
    )

    least_severity = LeastSeverityField(required=False, default=LeastSeverity.EVERYTHING)
    routing_key = serializers.CharField(
        source="secret", write_only=True, required=False, max_length=100, default="", allow_blank=True
    )

    class Meta:
        model = NoticeTarget
        fields: tuple[str, ...] = (
            "id",
            "setting",
            "pool",
            "channel",
            "address",
            "routing_key",
            "least_severity",
            "weekdays",
            "hours_from",
            "hours_until",
            "time_zone",
            "created_at",
        )
        read_only_fields: tuple[str, ...] = ("id", "created_at")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("secret") and attrs.get("channel") != Channel.PAGERDUTY:
            raise serializers.ValidationError(
                {"routing_key": gettext("Only PagerDuty uses a routing key. Leave this field empty.")}
            )
        return super().validate(attrs)

    def to_representation(self, target: NoticeTarget) -> dict[str, Any]:
        """Of a webhook only the host, for who may not edit what it belongs to."""
        shown = super().to_representation(target)
        return shown | {"address": address_of_target(self.context["request"].user, target)}


class SecretSerializer(TargetSerializer):
    """`secret` signs the requests to a webhook. Only this response contains it; empty for all others."""

    secret = serializers.SerializerMethodField()

    class Meta(TargetSerializer.Meta):
        fields = (*TargetSerializer.Meta.fields, "secret")
        read_only_fields = ("id", "created_at", "secret")

    def get_secret(self, target: NoticeTarget) -> str:
        return target.secret if target.channel in SIGNED else ""


@extend_schema_view(destroy=extend_schema(extensions=performing(DeleteTarget)))
class TargetViewSet(
    RecordedRows,
    OperationsMixin,
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    mixins.DestroyModelMixin,
    GenericViewSet[NoticeTarget],
):
    """Users who may edit the setting, or the settings of the pool, create and delete targets. To change one,
    create another."""

    queryset = NoticeTarget.objects.select_related("setting__pool", "pool").order_by("pk")
    serializer_class = TargetSerializer
    filterset_fields = ("setting__key", "pool__name", "channel")
    lookup_value_converter = "int"
    http_method_names = ["get", "post", "delete", "head", "options"]
    # Whoever sees targets may ask; the right to edit decides by setting and pool.
    action_permissions = dict.fromkeys(("create", "destroy"), ("alerts.view_noticetarget",))
    removal = DeleteTarget
    operations = {SendTest: Answer(NoticeSerializer), RenewSecret: Answer(SecretSerializer)}

    @extend_schema(request=TargetSerializer, responses={201: SecretSerializer})
    @transaction.atomic
    def create(self, request: Request) -> Response:
        """The response contains the secret of a webhook, only this once."""
        given = TargetSerializer(data=request.data, context=self.get_serializer_context())
        given.is_valid(raise_exception=True)
        target = NoticeTarget(**given.validated_data)
        target.clean()  # fills in what may stay empty
        self._check(target)
        with saving(target, request.user):
            save_target(target)
        return Response(self._with_secret(target), status=status.HTTP_201_CREATED)

    def perform_destroy(self, instance: NoticeTarget) -> None:
        with as_problems(f"notice-targets/{instance.pk}"):
            perform(DeleteTarget, instance, self.request.user)

    def _with_secret(self, target: NoticeTarget) -> dict[str, Any]:
        return dict(SecretSerializer(target, context=self.get_serializer_context()).data)

    def _check(self, target: NoticeTarget) -> None:
        request: Any = self.request
        if target.setting is not None:
            check_right(request, "edit", target.setting)
        elif target.pool is not None:
            check_edit_in(request, target.pool)
        elif why := EVERYWHERE.why_not(request.user, target):
            raise Forbidden(why)
