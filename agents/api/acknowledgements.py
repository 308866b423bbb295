"""/api/v1/acknowledgements/: deliveries of the mode CLIENT that wait for an answer, and the answers.

An agent answers through its KMA, with the token of that server; any other process with the token of a person
who may.
"""

from typing import Any

from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.viewsets import GenericViewSet

from agents.acknowledgements import answers
from agents.acknowledgements.answers import Answerer
from agents.acknowledgements.operations import Commit, RollBack
from agents.api.authentication import AnyTokenAuthentication, AuthenticatedServer
from agents.api.servers_pools import check_right
from agents.models import WAITING_STATES, Acknowledgement, AcknowledgementState, LaunchSetting
from agents.reasons import AGENT_ON
from console.audit.log import attempt
from console.models import ApiToken
from console.operations.operation import Operation, check_allowed
from console.operations.rest import forbidding, performing_by
from console.reasons import NO_REASON, said
from console.rest.errors import ApiProblem, Forbidden
from console.rest.lists import ByKey, PersonPermissions, asked_in
from console.rest.serializers import QuerySerializer, ReasonCode, ReasonParams, ReasonText
from contract.acknowledgements import LONGEST_ID, Action, parse_action

MOST_OF_JMS_ID = 255


class AcknowledgementSerializer(serializers.ModelSerializer[Acknowledgement]):
    """`state`: open, pending, committed, rolled_back, expired, lost. `opened_at` and `due_at` use the clock
    of the server."""

    setting = serializers.CharField(source="setting.key", read_only=True)
    server = serializers.CharField(source="server.name", read_only=True)
    activation = serializers.UUIDField(source="activation_uuid", read_only=True)
    answered_by = serializers.SerializerMethodField()
    answered_from = ReasonText()
    url = serializers.SerializerMethodField()
    reason = ReasonText()
    reason_code = ReasonCode("reason")
    reason_params = ReasonParams("reason")

    class Meta:
        model = Acknowledgement
        fields = (
            "acknowledgement",
            "url",
            "state",
            "reason",
            "reason_code",
            "reason_params",
            "action",
            "setting",
            "server",
            "activation",
            "epoch",
            "message_key",
            "jms_message_id",
            "attempt",
            "opened_at",
            "due_at",
            "answered_at",
            "answered_by",
            "answered_from",
            "ended_at",
        )
        read_only_fields = fields

    def get_answered_by(self, row: Acknowledgement) -> str | None:
        return row.answered_by.get_username() if row.answered_by else None

    def get_url(self, row: Acknowledgement) -> str:
        return address_of(row)


class ActionField(serializers.CharField):
    """COMMIT or JBXCommit, ROLLBACK or JBXRollback, in any letter case."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return parse_action(data)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None


class AnswerRequest(serializers.Serializer[Any]):
    """Requires either `acknowledgement`, or `setting` and `jms_message_id`."""

    acknowledgement = serializers.CharField(required=False, max_length=LONGEST_ID)
    setting = serializers.CharField(required=False, max_length=61)
    jms_message_id = serializers.CharField(required=False, max_length=MOST_OF_JMS_ID)
    action = ActionField()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        by_message = {"setting", "jms_message_id"} & attrs.keys()
        if ("acknowledgement" in attrs) == bool(by_message) or len(by_message) == 1:
            raise serializers.ValidationError("Send either acknowledgement, or setting and jms_message_id.")
        return attrs


class AcknowledgementQuery(QuerySerializer):
    """Filters of the list."""

    setting = serializers.CharField(
        source="setting__key", required=False, max_length=61, help_text="Key of a setting."
    )
    jms_message_id = serializers.CharField(required=False, max_length=MOST_OF_JMS_ID)
    state = serializers.ChoiceField(
        choices=["waiting", *AcknowledgementState.values],
        required=False,
        default="waiting",
        help_text="waiting (default): open or pending.",
    )


class AcknowledgementProblem(ApiProblem):
    """Why a delivery was not answered. The body has `state` and `reason` too, as an answer has."""

    def __init__(self, refused: answers.NotAnswered, status_code: int, what_to_do: str) -> None:
        row, why = refused.row, refused.reason
        more = {"state": row.state if row else "", "reason": why}
        super().__init__(why, where="acknowledgement", what_to_do=what_to_do, code=refused.code, **more)
        self.status_code = status_code


class MayAnswer(BasePermission):
    """Servers pass on what their agents answer; of people those who may see the rows. Whether one may answer
    is asked for the setting."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if isinstance(request.user, AuthenticatedServer):
            return bool(view.action == "create")
        return PersonPermissions().has_permission(request, view)


OPERATIONS: dict[Action, type[Operation[Acknowledgement]]] = {
    Action.COMMIT: Commit,
    Action.ROLLBACK: RollBack,
}
# Status and what to do, by the code of the refusal.
PROBLEM_OF = {
    "not_found": (404, "See /api/v1/acknowledgements/."),
    "not_exactly_one": (409, "See /api/v1/acknowledgements/."),
    "answered_otherwise": (409, "No action is needed: the first answer counts."),
    "gone": (410, "No action is needed: the message was returned and will be redelivered."),
}
PROBLEMS = {
    code: OpenApiResponse(description="See `error`, `state` and `reason`.")
    for code in (400, 403, 404, 409, 410)
}


@extend_schema_view(list=extend_schema(parameters=[AcknowledgementQuery]))
class AcknowledgementViewSet(
    ByKey, mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Acknowledgement]
):
    """Newest first, in pages by key."""

    queryset = Acknowledgement.objects.select_related("setting", "server", "answered_by")
    serializer_class = AcknowledgementSerializer
    authentication_classes = [AnyTokenAuthentication]
    permission_classes = [MayAnswer]
    action_permissions = {"create": ("agents.view_acknowledgement",)}
    lookup_field = "acknowledgement"
    lookup_value_regex = r"[A-Za-z0-9_.-]{1,255}"
    ordering = ("-created_at", "-id")

    def get_throttles(self) -> list[BaseThrottle]:
        return [] if isinstance(self.request.user, AuthenticatedServer) else super().get_throttles()

    def get_queryset(self) -> Any:
        rows = super().get_queryset()
        if self.action != "list":
            return rows
        wanted = asked_in(self.request, AcknowledgementQuery)
        state = wanted.pop("state")
        rows = (
            rows.filter(ended_at=None, state__in=WAITING_STATES)
            if state == "waiting"
            else rows.filter(state=state)
        )
        return rows.filter(**wanted)

    @extend_schema(
        request=AnswerRequest,
        responses={200: AcknowledgementSerializer, 202: AcknowledgementSerializer, **PROBLEMS},
        extensions=performing_by(
            {each.code: {"action": action.value} for action, each in OPERATIONS.items()}
        ),
    )
    def create(self, request: Request) -> Response:
        """Waits some seconds for the outcome: 200 with the final state, else 202 with the address to poll
        (`Location`)."""
        asked = AnswerRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        action = asked.validated_data["action"]
        try:
            row = self._answered(self._delivery(asked.validated_data, action), action)
        except answers.NotAnswered as refused:
            raise AcknowledgementProblem(refused, *PROBLEM_OF[refused.code]) from refused
        waiting = row.state in WAITING_STATES
        headers = {"Location": address_of(row)} if waiting else {}
        code = status.HTTP_202_ACCEPTED if waiting else status.HTTP_200_OK
        return Response(self.get_serializer(row).data, status=code, headers=headers)

    def _delivery(self, asked: dict[str, Any], action: Action) -> Acknowledgement:
        """Raises Forbidden, Http404, NotAnswered."""
        if "acknowledgement" in asked:
            return answers.named(asked["acknowledgement"], timezone.now())
        if isinstance(self.request.user, AuthenticatedServer):
            raise Forbidden(
                "An agent must send the delivery's id.",
                where="acknowledgement",
                what_to_do="Send `acknowledgement`.",
            )
        setting = LaunchSetting.objects.filter(key=asked["setting"]).first()
        if setting is None:
            raise Http404
        # Who may not answer is not told whether there is one.
        target, code = f"setting:{setting.key}", OPERATIONS[action].code
        with attempt(code, by=self.request.user, target=target, setting_key=setting.key):
            check_right(self.request, "answer", setting)
        return answers.outstanding(setting.key, asked["jms_message_id"])

    def _answered(self, row: Acknowledgement, action: Action) -> Acknowledgement:
        """A program answers with a token, as often as messages come: its row says who, and the audit does
        not. Raises Forbidden, NotAnswered."""
        user: Any = self.request.user
        token = self.request.auth
        who = Answerer(by=user, through=said(token.name) if isinstance(token, ApiToken) else NO_REASON)
        if isinstance(user, AuthenticatedServer):
            who = Answerer(through=AGENT_ON(server=user.server.name))
        else:
            with forbidding(f"settings/{row.setting.key}"):
                check_allowed(OPERATIONS[action], row, user)
        return answers.until_ended(answers.acknowledge(row, action, who, timezone.now()))


def address_of(row: Acknowledgement) -> str:
    return reverse("api-acknowledgement-detail", args=[row.acknowledgement])
