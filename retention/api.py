"""/api/v1/retention/: the policy and the periods in force, for each setting too, and what runs deleted."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Activation, LaunchSetting
from console.rest.lists import KeysetPages, NoFilters
from console.rest.serializers import ReasonCode, ReasonParams, ReasonText
from retention.models import RetentionFigure, RetentionRun
from retention.pages import VIEW
from retention.protocols.queries import last_finished_of, ranges_of, span_of
from retention.rules import Rule
from retention.run_ledger import deleted_by_kind
from retention.text import of_figure, periods_in_force, rule_in_force

RIGHT: dict[str, tuple[str, ...]] = {"get": (VIEW,)}
MOST_FIGURES = 1000


class RetentionPolicySerializer(serializers.Serializer[Any]):
    """`days`: retention of protocols before the start of a failed activation. `silent_days`: retention by age
    for settings without a finished activation; null: unlimited. `keep_dead`: protocols of dead letters are
    kept. `periods`: days by kind; null: unlimited."""

    days = serializers.IntegerField()
    silent_days = serializers.IntegerField(allow_null=True)
    keep_dead = serializers.BooleanField()
    periods = serializers.DictField(child=serializers.IntegerField(allow_null=True))


class RetentionPolicy(APIView):
    """The retention policy and periods of the site."""

    action_permissions = RIGHT

    @extend_schema(operation_id="retention", responses=RetentionPolicySerializer)
    def get(self, request: Request) -> Response:
        rule = rule_in_force()
        periods = {what: days or None for what, days in periods_in_force().items()}
        found = {**rule, "silent_days": rule["silent_days"] or None, "periods": periods}
        return Response(RetentionPolicySerializer(found).data)


# -- of each setting -----------------------------------------------------------------------------------------


class LastFinishedSerializer(serializers.Serializer[Activation]):
    """`well`: the activation succeeded; null: unknown."""

    id = serializers.UUIDField(source="pk")
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField()
    well = serializers.BooleanField(allow_null=True)


class RetentionRangeSerializer(serializers.Serializer[Any]):
    """`well`: everything up to the last finished activation. `error`: older than `older_than`, up to that
    activation. `silent`: everything older than `older_than`."""

    rule = serializers.ChoiceField([each.value for each in Rule], source="rule.value")
    older_than = serializers.DateTimeField(source="before", allow_null=True)


class SettingRetentionSerializer(serializers.ModelSerializer[LaunchSetting]):
    """`days`: effective retention; `retention_days`: that of the setting. `goes`: protocols that are deleted
    next."""

    setting = serializers.CharField(source="key")
    days = serializers.SerializerMethodField()
    last_finished = serializers.SerializerMethodField()
    goes = serializers.SerializerMethodField()

    class Meta:
        model = LaunchSetting
        fields = ("setting", "days", "retention_days", "last_finished", "goes")
        read_only_fields = fields

    def get_days(self, setting: LaunchSetting) -> int:
        return span_of(setting) // timedelta(days=1)

    @extend_schema_field(LastFinishedSerializer(allow_null=True))
    def get_last_finished(self, setting: LaunchSetting) -> Any:
        last = last_finished_of(setting)
        return LastFinishedSerializer(last).data if last else None

    @extend_schema_field(RetentionRangeSerializer(many=True))
    def get_goes(self, setting: LaunchSetting) -> Any:
        return RetentionRangeSerializer(ranges_of(setting, timezone.now()), many=True).data


class SettingsByKey(KeysetPages):
    """Small pages: each setting asks for its activations."""

    page_size, max_page_size, ordering = 50, 100, ("key",)


class SettingRetentions(generics.ListAPIView[LaunchSetting]):
    """In pages by key."""

    queryset = LaunchSetting.objects.all()
    serializer_class = SettingRetentionSerializer
    pagination_class = SettingsByKey
    filter_backends = (NoFilters,)
    action_permissions = RIGHT


# -- what runs deleted ---------------------------------------------------------------------------------------


class RetentionRunSerializer(serializers.ModelSerializer[RetentionRun]):
    """`by_kind`: deleted rows by kind."""

    by_kind = serializers.SerializerMethodField()
    problem = ReasonText()
    problem_code = ReasonCode("problem")
    problem_params = ReasonParams("problem")

    class Meta:
        model = RetentionRun
        fields: tuple[str, ...] = (
            "id", "state", "started_at", "ended_at", "deleted", "by_kind", "problem", "problem_code",
            "problem_params",
        )  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.DictField(child=serializers.IntegerField()))
    def get_by_kind(self, run: RetentionRun) -> dict[str, int]:
        """Of a list it was asked for the whole page at once."""
        found = self.context.get("deleted")
        return (deleted_by_kind([run]) if found is None else found).get(run.pk, {})


class RetentionFigureSerializer(serializers.Serializer[Any]):
    """`kept`: rows past their retention that are kept, by reason."""

    what = serializers.CharField()
    setting = serializers.CharField()
    rule = serializers.CharField()
    older_than = serializers.DateTimeField(allow_null=True)
    deleted = serializers.IntegerField()
    kept = serializers.DictField(child=serializers.IntegerField())


class WholeRetentionRunSerializer(RetentionRunSerializer):
    """`figures`: the largest 1,000, by kind and setting."""

    figures = serializers.SerializerMethodField()

    class Meta(RetentionRunSerializer.Meta):
        fields = (*RetentionRunSerializer.Meta.fields, "figures")
        read_only_fields = fields

    @extend_schema_field(RetentionFigureSerializer(many=True))
    def get_figures(self, run: RetentionRun) -> Any:
        rows = RetentionFigure.objects.filter(run=run).order_by("-deleted", "pk")[:MOST_FIGURES]
        return [of_figure(each) for each in rows]


class NewestRetentionRuns(KeysetPages):
    ordering = ("-id",)


class RetentionRuns(generics.ListAPIView[RetentionRun]):
    """Newest first, in pages by key."""

    queryset = RetentionRun.objects.all()
    serializer_class = RetentionRunSerializer
    pagination_class = NewestRetentionRuns
    filter_backends = (NoFilters,)
    action_permissions = RIGHT
    deleted: dict[int, dict[str, int]] | None = None

    def paginate_queryset(self, queryset: Any) -> Any:
        runs = super().paginate_queryset(queryset)
        self.deleted = deleted_by_kind(runs or [])
        return runs

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "deleted": self.deleted}


class OneRetentionRun(generics.RetrieveAPIView[RetentionRun]):
    """With its largest figures, by kind and setting."""

    queryset: QuerySet[RetentionRun] = RetentionRun.objects.all()
    serializer_class = WholeRetentionRunSerializer
    action_permissions = RIGHT


urlpatterns = [
    path("retention/", RetentionPolicy.as_view(), name="retention"),
    path("retention/settings/", SettingRetentions.as_view(), name="retention-settings"),
    path("retention/runs/", RetentionRuns.as_view(), name="retention-runs"),
    path("retention/runs/<int:pk>/", OneRetentionRun.as_view(), name="retention-run"),
]
