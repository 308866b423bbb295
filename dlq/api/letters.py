"""/api/v1/dead-letters/: the index, beside the broker's own count, and one letter whole with its case."""

import base64
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.pagination import KeysetPages
from agents.services.broker import management
from broker.amqp_codec import decode
from broker.errors import BrokerError, MessageUndecodable
from contract.properties import dead_letter_queue
from contract.text import storable
from contract.typed import to_json
from dlq.masking import Masks
from dlq.masks import masks_for
from dlq.models import DeadLetter, LetterReport, LetterState, ReplayItem
from failures.api.protocols import ProtocolHeadSerializer
from failures.models import FailureProtocol

# Long, and of one letter only: not in lists.
TYPED = ("properties", "annotations")
WHOLE_ONLY = ("encoded", *TYPED)
# Rows of each kind in a case.
CASE = 200


class LetterSerializer(serializers.ModelSerializer[DeadLetter]):
    """Its context holds the `masks` of who asks."""

    class Meta:
        model = DeadLetter
        exclude = ("setting", *WHOLE_ONLY)

    @property
    def masks(self) -> Masks:
        masks: Masks = self.context["masks"]
        return masks

    def to_representation(self, instance: DeadLetter) -> dict[str, Any]:
        told = super().to_representation(instance) | {"body_text": self.masks.head_of_body(instance)}
        typed = {name: self.masks.items(instance, told[name]) for name in TYPED if name in told}
        return told | typed


class Masked:
    """A view whose serializer knows what the person who asks may not see."""

    def get_serializer_context(self) -> dict[str, Any]:
        context: dict[str, Any] = super().get_serializer_context()  # type: ignore[misc]
        return context | {"masks": masks_for(context["request"].user)}


class LetterQuery(serializers.Serializer[Any]):
    """What a list may be narrowed to. Instants: `since` inclusive, `until` exclusive. `state` is `dead` unless said
    otherwise; `every` is all of them."""

    setting = serializers.CharField(required=False)
    queue = serializers.CharField(required=False)
    state = serializers.ChoiceField([*LetterState.values, "every"], default=LetterState.DEAD.value)
    message_key = serializers.CharField(required=False)
    exception_type = serializers.CharField(required=False)
    fingerprint = serializers.CharField(required=False)
    since = serializers.DateTimeField(source="seen_at__gte", required=False)
    until = serializers.DateTimeField(source="seen_at__lt", required=False)

    def filters(self) -> dict[str, Any]:
        wanted = dict(self.validated_data)
        if wanted["state"] == "every":
            del wanted["state"]
        if key := wanted.pop("setting", ""):
            wanted["queue"] = dead_letter_queue(key)
        return wanted


class NewestLetters(KeysetPages):
    ordering = "-id"


class Letters(Masked, generics.ListAPIView[DeadLetter]):
    queryset = DeadLetter.objects.defer(*WHOLE_ONLY)
    serializer_class = LetterSerializer
    pagination_class = NewestLetters
    filter_backends = ()

    def _query(self) -> LetterQuery:
        query = LetterQuery(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        return query

    def get_queryset(self) -> QuerySet[DeadLetter]:
        return super().get_queryset().filter(**self._query().filters())

    @extend_schema(
        parameters=[LetterQuery],
        description="With `setting` or `queue` the answer also says `indexed`, how many dead letters of it the index "
        "knows, and `broker_count`, how many the broker counts now (null with `broker_problem` when it is away).",
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response = super().get(request, *args, **kwargs)
        if queue := self._query().filters().get("queue"):
            response.data |= figures_of(queue)
        return response


def figures_of(queue: str) -> dict[str, Any]:
    indexed = DeadLetter.objects.filter(queue=queue, state=LetterState.DEAD).count()
    try:
        count = int(management().attribute(f"queue.{queue}", "MessageCount"))
    except BrokerError as error:
        return {"indexed": indexed, "broker_count": None, "broker_problem": str(error)}
    return {"indexed": indexed, "broker_count": count, "broker_problem": ""}


class LetterReportSerializer(serializers.ModelSerializer[LetterReport]):
    class Meta:
        model = LetterReport
        exclude = ("letter_queue",)


class LetterReplaySerializer(serializers.ModelSerializer[ReplayItem]):
    replay = serializers.UUIDField(source="job_id")
    by = serializers.CharField(source="job.by.username", default=None)
    reason = serializers.CharField(source="job.reason")

    class Meta:
        model = ReplayItem
        fields = ("replay", "letter", "by", "reason", "state", "state_at", "outcome", "outcome_at", "died_as")


class WholeLetterSerializer(LetterSerializer):
    body = serializers.SerializerMethodField(
        help_text="`text`, or `base64` for bytes that are no text, or `typed` for maps, lists and single values, or "
        "`masked` for bytes that are no message and may hold masked properties."
    )
    case = serializers.SerializerMethodField(
        help_text="`protocols`, `chapters` (deaths), `replays` and `reports` of the same message, newest first."
    )

    class Meta:
        model = DeadLetter
        exclude = ("setting", "encoded")

    def get_body(self, letter: DeadLetter) -> dict[str, Any]:
        return body_json(bytes(letter.encoded), hidden=self.masks.hides_bytes(letter))

    def get_case(self, letter: DeadLetter) -> dict[str, Any]:
        return case_json(letter, self.context)


def body_json(encoded: bytes, *, hidden: bool = False) -> dict[str, Any]:
    """`hidden`: of what is no message nothing is told."""
    try:
        body = decode(encoded).body
    except MessageUndecodable:
        if hidden:
            return {"masked": True}
        return {"base64": base64.b64encode(encoded).decode("ascii")}
    if isinstance(body.value, str):
        return {"text": storable(body.value)}
    if not isinstance(body.value, bytes):
        return {"typed": to_json(body)}
    try:
        text = body.value.decode()
    except UnicodeDecodeError:
        text = "\0"
    return {"base64": base64.b64encode(body.value).decode("ascii")} if "\0" in text else {"text": text}


def case_json(letter: DeadLetter, context: Mapping[str, Any]) -> dict[str, Any]:
    """A letter without a key has only itself."""
    same = {"setting_key": letter.setting_key, "message_key": letter.message_key}
    protocols = FailureProtocol.objects.filter(**same).defer("traceback", "properties")
    chapters = DeadLetter.objects.filter(**same) if letter.message_key else DeadLetter.objects.filter(pk=letter.pk)
    reports = LetterReport.objects.filter(**same)
    letters = list(chapters.defer(*WHOLE_ONLY)[:CASE])
    replays = ReplayItem.objects.filter(letter__in=letters).select_related("job__by").order_by("-pk")
    has_key = bool(letter.message_key)
    return {
        "protocols": ProtocolHeadSerializer(protocols[:CASE] if has_key else [], many=True).data,
        "chapters": LetterSerializer(letters, many=True, context=context).data,
        "replays": LetterReplaySerializer(replays[:CASE], many=True).data,
        "reports": LetterReportSerializer(reports[:CASE] if has_key else [], many=True).data,
    }


class OneLetter(Masked, generics.RetrieveAPIView[DeadLetter]):
    queryset = DeadLetter.objects.all()
    serializer_class = WholeLetterSerializer
