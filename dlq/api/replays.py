"""/api/v1/replays/: giving dead letters back to their setting, and what became of them."""

from typing import Any, NoReturn

from django.db.models import Count, QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.errors import ApiProblem, Conflict
from agents.api.pagination import KeysetPages
from agents.models import LaunchSetting
from dlq.models import ItemState, Outcome, ReplayJob
from dlq.replay.jobs import LARGEST_SELECTION, ReplayRefused, give_back_all, give_back_letters

WAITING = "waiting"


class ReplaySerializer(serializers.ModelSerializer[ReplayJob]):
    setting = serializers.CharField(source="setting_key")
    by = serializers.CharField(source="by.username", default=None)
    letters = serializers.SerializerMethodField(help_text="How many letters are planned, given_back, and so on.")
    outcomes = serializers.SerializerMethodField(
        help_text="Of the letters that were given back: handled, failed_again, dead_again, waiting."
    )

    class Meta:
        model = ReplayJob
        fields = (
            "id", "setting", "scope", "reason", "by", "state", "created_at", "started_at", "planned_at",
            "finished_at", "total", "problem", "letters", "outcomes",
        )  # fmt: skip

    def get_letters(self, job: ReplayJob) -> dict[str, int]:
        counted = dict(job.items.order_by().values_list("state").annotate(Count("pk")))
        return {state: counted.get(state, 0) for state in ItemState.values}

    def get_outcomes(self, job: ReplayJob) -> dict[str, int]:
        given_back = job.items.filter(state=ItemState.GIVEN_BACK).order_by()
        counted = dict(given_back.values_list("outcome").annotate(Count("pk")))
        return {outcome or WAITING: counted.get(outcome, 0) for outcome in Outcome.values}


class AskSerializer(serializers.Serializer[Any]):
    """Either `letters` or `all`."""

    setting = serializers.CharField(max_length=61)
    letters = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), required=False, max_length=LARGEST_SELECTION
    )
    all = serializers.BooleanField(required=False, default=False)
    reason = serializers.CharField(max_length=2000, required=False, default="", allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["all"] == ("letters" in attrs):
            raise serializers.ValidationError({"letters": "Name letters, or say all: true, one of the two."})
        return attrs


class NewestReplays(KeysetPages):
    ordering = ("-created_at", "-id")


class Replays(generics.ListAPIView[ReplayJob]):
    queryset = ReplayJob.objects.select_related("by")
    serializer_class = ReplaySerializer
    pagination_class = NewestReplays
    filter_backends = ()
    action_permissions = {"post": ("dlq.view_deadletter", "dlq.give_back")}

    def get_queryset(self) -> QuerySet[ReplayJob]:
        key = self.request.query_params.get("setting", "")
        return super().get_queryset().filter(setting_key=key) if key else super().get_queryset()

    @extend_schema(request=AskSerializer, responses={201: ReplaySerializer})
    def post(self, request: Request) -> Response:
        """Freezes the scope and answers the planned job; a worker does the rest. 409 with the reason if refused."""
        ask = AskSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        wanted = ask.validated_data
        setting = get_object_or_404(LaunchSetting, key=wanted["setting"])
        options = {"by": request.user, "reason": wanted["reason"], "now": timezone.now()}
        try:
            if wanted["all"]:
                job = give_back_all(setting, **options)
            else:
                job = give_back_letters(setting, wanted["letters"], **options)
        except ReplayRefused as refused:
            _refuse(refused)
        return Response(ReplaySerializer(job).data, status=status.HTTP_201_CREATED)


def _refuse(refused: ReplayRefused) -> NoReturn:
    kind = ApiProblem if refused.code == "too_many" else Conflict
    raise kind(
        refused.reason, code=refused.code, where="letters", what_to_do=refused.what_to_do, **refused.more
    ) from refused


class OneReplay(generics.RetrieveAPIView[ReplayJob]):
    queryset = ReplayJob.objects.select_related("by")
    serializer_class = ReplaySerializer
