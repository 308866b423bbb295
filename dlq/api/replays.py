"""/api/v1/replays/: moving dead letters, and what became of them; pausing, resuming, cancelling,
approving."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema
from rest_framework import generics, mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from console.audit.refusals import Audited
from console.operations.rest import OperationsMixin, performing_by
from console.rest.lists import ByKey, asked_in
from console.rest.serializers import QuerySerializer, ReasonCode, ReasonParams, ReasonText
from dlq.api.preflight import ACTIONS, AskSerializer, as_replay_problems, request_of
from dlq.dead_letters.masks import Masks, everybodys_masks, masks_for
from dlq.edit.queries import VisibleEdit, visible_edit
from dlq.models import Action, ItemState, ReplayItem, ReplayJob
from dlq.replay.counts import OUTCOMES, is_walking, reason_to_wait, waiting
from dlq.replay.creation import CODES, begin_replay
from dlq.replay.operations import ON_REPLAYS, jobs_for
from dlq.search.filter import redacted_query

# Asked in the view: a pool may grant what no permission does.
ANYBODY: dict[str, tuple[str, ...]] = {"get": (), "post": ()}


class ReplaySerializer(serializers.ModelSerializer[ReplayJob]):
    setting = serializers.CharField(source="setting_key")
    target = serializers.CharField(source="target_key")
    by = serializers.CharField(source="by.username", default=None)
    approved_by = serializers.CharField(source="approved_by.username", default=None)
    paused_by = serializers.CharField(source="paused_by.username", default=None)
    query = serializers.SerializerMethodField(help_text="The filter; values of masked properties are hidden.")
    letters = serializers.SerializerMethodField(
        help_text="Number of messages per state: planned, given_back, unconfirmed, taken_elsewhere and "
        "others."
    )
    counted = serializers.BooleanField(
        source="is_counted",
        read_only=True,
        help_text="false: counting is in progress, `total` is a lower bound.",
    )
    problem = ReasonText()
    problem_code = ReasonCode("problem")
    problem_params = ReasonParams("problem")
    wait_reason = serializers.SerializerMethodField(
        help_text="Code of why no messages move now. Empty while they move, and for paused and finished jobs."
    )
    walk = serializers.SerializerMethodField(
        help_text="The scan in progress: `queue`, `since`, `seen` (messages so far). Otherwise null."
    )
    outcomes = serializers.SerializerMethodField(
        help_text="Outcomes of replayed and unconfirmed messages: `handled` (processed), `failed_again`, "
        "`dead_again` (dead-lettered again), `unknown` (no report for an hour), `waiting` (within it)."
    )

    class Meta:
        model = ReplayJob
        fields = (
            "id", "action", "setting", "source_queue", "target_queue", "target", "scope", "query", "reason",
            "by",
            "state", "created_at", "started_at", "planned_at", "finished_at", "total", "counted", "problem",
            "problem_code", "problem_params",
            "wait_reason",
            "walk", "letters", "outcomes", "skipped", "per_second", "window_from", "window_until", "ladder",
            "ladder_percent", "ladder_step", "in_order", "hold_minutes", "hold", "held_at", "hold_until",
            "acknowledged", "needs_second", "approved_by", "approved_at",
            "paused_by",
            "paused_at", "pause_reason",
        )  # fmt: skip

    def get_query(self, job: ReplayJob) -> str:
        """Returns it as anybody may see it, where there is no request."""
        return redacted_query(job.query, self.masks, job.setting_key) if job.query else ""

    @cached_property
    def masks(self) -> Masks:
        asking = self.context.get("request")
        return masks_for(asking.user) if asking else everybodys_masks()

    def get_wait_reason(self, job: ReplayJob) -> str:
        return reason_to_wait(job, timezone.now())

    def get_walk(self, job: ReplayJob) -> dict[str, Any] | None:
        if not is_walking(job, timezone.now()):
            return None
        return {"queue": job.walking_queue, "since": job.walking_since, "seen": job.walked}

    def get_letters(self, job: ReplayJob) -> dict[str, int]:
        return {state: int(job.counts.get(state, 0)) for state in ItemState.values}

    def get_outcomes(self, job: ReplayJob) -> dict[str, int]:
        return {"waiting": waiting(job)} | {
            outcome.value: int(job.counts.get(outcome, 0)) for outcome in OUTCOMES
        }


class ReplayQuery(QuerySerializer):
    setting = serializers.CharField(required=False, source="setting_key")
    state = serializers.CharField(required=False)
    action = serializers.CharField(required=False)


class Replays(ByKey, Audited, generics.ListAPIView[ReplayJob]):
    """Lists replay jobs, newest first."""

    queryset = ReplayJob.objects.all()
    serializer_class = ReplaySerializer
    ordering = ("-created_at", "-id")
    action_permissions = ANYBODY
    audit_action = CODES[Action.GIVE_BACK]

    def get_queryset(self) -> QuerySet[ReplayJob]:
        return jobs_for(self.request.user).filter(**asked_in(self.request, ReplayQuery))

    @extend_schema(parameters=[ReplayQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        request=AskSerializer,
        responses={201: ReplaySerializer},
        extensions=performing_by({CODES[action]: {"action": action.value} for action in ACTIONS}),
    )
    def post(self, request: Request) -> Response:
        """Fixes the scope and returns the planned job; a worker carries it out. 409 with the reason if
        refused: warnings of the pre-flight must be listed in `acknowledge`."""
        ask = AskSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        self.audit_action = CODES[ask.validated_data["action"]]
        with as_replay_problems():
            job = begin_replay(request_of(ask.validated_data), by=request.user, now=timezone.now())
        return Response(ReplaySerializer(job).data, status=status.HTTP_201_CREATED)


class ReplayItemSerializer(serializers.ModelSerializer[ReplayItem]):
    changes = serializers.SerializerMethodField(
        help_text="Changes of an edit: list of `{what, before, after}`; for a body with `lines` (unified "
        "diff), or with `hides_lines` if a diff could reveal masked values. Null: not edited, or not yet."
    )
    changes_deleted_at = serializers.SerializerMethodField(
        help_text="Time when retention deleted the changes."
    )

    class Meta:
        model = ReplayItem
        fields = (
            "id", "letter", "state", "state_at", "why", "outcome", "outcome_at", "died_as", "changes",
            "changes_deleted_at",
        )  # fmt: skip

    @cached_property
    def masks(self) -> Masks:
        return masks_for(self.context["request"].user)

    def _edit(self, item: ReplayItem) -> VisibleEdit | None:
        edit = getattr(item, "edit", None)
        return visible_edit(edit, self.masks) if edit is not None else None

    def get_changes(self, item: ReplayItem) -> list[dict[str, Any]] | None:
        edit = self._edit(item)
        return edit.changes if edit else None

    def get_changes_deleted_at(self, item: ReplayItem) -> datetime | None:
        edit = self._edit(item)
        return edit.deleted_at if edit else None


class ReplayItems(ByKey, generics.ListAPIView[ReplayItem]):
    """The dead letters of one replay with their outcomes."""

    queryset = ReplayItem.objects.all()
    serializer_class = ReplayItemSerializer
    ordering = ("id",)
    action_permissions = ANYBODY

    def get_queryset(self) -> QuerySet[ReplayItem]:
        job = get_object_or_404(jobs_for(self.request.user), pk=self.kwargs["pk"])
        rows = super().get_queryset().filter(job=job)
        return rows.select_related("edit", "letter").defer("edit__encoded")


class ReplayViewSet(OperationsMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[ReplayJob]):
    """A replay job."""

    queryset = ReplayJob.objects.all()
    serializer_class = ReplaySerializer
    action_permissions = {"retrieve": ()}
    lookup_value_converter = "uuid"
    operations = dict.fromkeys(ON_REPLAYS)

    def get_queryset(self) -> QuerySet[ReplayJob]:
        return jobs_for(self.request.user)
