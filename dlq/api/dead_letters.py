"""/api/v1/dead-letters/: the index, beside the broker's own count, and one dead letter whole with its
case."""

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from agents.pools.rights import may_anywhere
from broker.amqp.codec import decode
from broker.port import BrokerError, MessageUndecodable
from console.broker import management
from console.lists.keyset import BIGGEST_KEY, COUNTED, count_up_to
from console.rest.errors import Forbidden
from console.rest.lists import check_filter, number_asked, parameters_of
from contract.names import dead_letter_queue
from contract.typed import storable, to_json
from dlq import rights
from dlq.dead_letters.masks import Masks, masks_for
from dlq.dead_letters.rules.body import body_of, visible_body
from dlq.models import Action, DeadLetter, LetterReport, LetterState, ReplayItem
from dlq.models.content import with_heads
from dlq.outcomes.settlement import redirected_to
from dlq.replay.counts import LEFT
from dlq.search.filter import LetterFilter
from dlq.search.visibility import found, letters_for, newest_found, sees_queue
from failures.api.protocols import ProtocolHeadSerializer
from failures.models import FailureProtocol

# -- permission for all dead letters, or a right in a pool for some ------------------------------------------


if TYPE_CHECKING:
    Base = APIView
else:
    Base = object


class SeesLetters(Base):
    """First among the bases of a view: 403 for who may see none at all. Which ones, the view asks
    `dlq.search.visibility`."""

    action_permissions: dict[str, tuple[str, ...]] = {"get": (), "post": (), "patch": (), "delete": ()}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not may_anywhere(request.user, rights.SEE):
            raise Forbidden(
                _(
                    "Dead letters not shown: you don't have the permission “Can view dead letter”. Ask an "
                    "administrator for it."
                )
            )


# Long, and of one dead letter only: not in lists.
TYPED = ("properties", "annotations")
# Rows of each kind in a case.
CASE = 200
PAGE_SIZE, LARGEST_PAGE = 100, 500


class LetterSerializer(serializers.ModelSerializer[DeadLetter]):
    """A dead letter; masked values are hidden from users who may not see them."""

    body_text = serializers.CharField(read_only=True)

    class Meta:
        model = DeadLetter
        exclude = ("setting",)

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
        context: dict[str, Any] = super().get_serializer_context()  # type: ignore[misc]  # a mixin of views
        return context | {"masks": masks_for(context["request"].user)}


class LetterPageSerializer(serializers.Serializer[Any]):
    """`count` dead letters match. With `more` it is a lower bound and `about` an estimate."""

    next = serializers.URLField(allow_null=True)
    count = serializers.IntegerField()
    more = serializers.BooleanField()
    about = serializers.IntegerField(allow_null=True)
    results = LetterSerializer(many=True)


class Letters(SeesLetters, Masked, generics.GenericAPIView[DeadLetter]):
    queryset = with_heads(DeadLetter.objects.all())
    serializer_class = LetterSerializer
    filter_backends = ()

    @extend_schema(
        operation_id="dead_letters_list",
        parameters=parameters_of(
            LetterFilter,
            OpenApiParameter("before", int, description="Only numbers below this one, as in `next`."),
            largest_page=LARGEST_PAGE,
        ),
        responses=LetterPageSerializer,
        description="Newest first. Filters are combined with AND. `state` defaults to `dead`; `every` means "
        "all states. `since` is inclusive, `until` exclusive. With one `setting` or `queue` the response has "
        "`indexed`, the number of its dead letters in the index (up to 10,000: `indexed_more`), and "
        "`broker_count`, the current count of the broker (null with `broker_problem` if unavailable).",
    )
    def get(self, request: Request) -> Response:
        filters, _rows = found(request.query_params, request.user)
        check_filter(request.query_params, filters)
        before = number_asked(request, "before", BIGGEST_KEY)
        size = number_asked(request, "page_size", LARGEST_PAGE) or PAGE_SIZE
        some = newest_found(filters, request.user, before=before, size=size + 1)
        rows = {row.pk: row for row in self.get_queryset().filter(pk__in=some.places[:size])}
        letters = [rows[number] for number in some.places[:size] if number in rows]
        older = some.places[size - 1] if len(some.places) > size else some.stopped_at
        answer = {
            "next": replace_query_param(request.build_absolute_uri(), "before", older)
            if older is not None
            else None,
            "count": some.count,
            "more": some.more,
            "about": some.about,
            "results": self.get_serializer(letters, many=True).data,
        }
        queues = filters.asked.queues or ()
        if len(queues) == 1 and sees_queue(request.user, queues[0]):
            answer |= figures_of(queues[0])
        return Response(answer)


def figures_of(queue: str) -> dict[str, Any]:
    known = count_up_to(DeadLetter.objects.filter(queue=queue, state=LetterState.DEAD), COUNTED)
    told = {"indexed": min(known, COUNTED), "indexed_more": known > COUNTED}
    try:
        count = int(management().attribute(f"queue.{queue}", "MessageCount"))
    except BrokerError as error:
        return told | {"broker_count": None, "broker_problem": str(error)}
    return told | {"broker_count": count, "broker_problem": ""}


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


class ArrivalSerializer(serializers.ModelSerializer[ReplayItem]):
    setting = serializers.CharField(source="job.setting_key")
    target = serializers.CharField(source="job.target_key")

    class Meta:
        model = ReplayItem
        fields = ("setting", "target", "state", "state_at")


class WholeLetterSerializer(LetterSerializer):
    body = serializers.SerializerMethodField(
        help_text="One of: `text`; `base64` for binary bodies; `typed` for maps, lists and single values; "
        "`masked` for bodies that may hold masked fields but cannot be parsed; `deleted` (`at`, `why`) after "
        "retention. Masked fields of JSON are hidden."
    )
    case = serializers.SerializerMethodField(
        help_text="`protocols`, `chapters` (each time in a dead-letter queue), `replays` and `reports` of "
        "the same message, newest first. `redirected`: the `setting` and the `target` of a redirect."
    )
    properties = serializers.JSONField(read_only=True)
    annotations = serializers.JSONField(read_only=True)

    class Meta:
        model = DeadLetter
        exclude = ("setting",)

    def get_body(self, letter: DeadLetter) -> dict[str, Any]:
        return body_json(letter, self.masks)

    def get_case(self, letter: DeadLetter) -> dict[str, Any]:
        return case_json(letter, self.context)


def body_json(letter: DeadLetter, masks: Masks) -> dict[str, Any]:
    """Returns it as this person may see it: `masked` alone where nothing of it may be told, `deleted` alone
    where it is gone."""
    if letter.body_deleted_at:
        return {"deleted": {"at": letter.body_deleted_at.isoformat(), "why": "retention"}}
    try:
        message = decode(bytes(letter.encoded))
    except MessageUndecodable:
        return {"masked": True} if masks.hides_bytes(letter) else _base64(bytes(letter.encoded))
    whole, body = body_of(message, letter.jms_kind), message.body
    seen = visible_body(whole, letter, masks)
    if seen is None:
        return {"masked": True}
    if seen is not whole:
        return {"text": storable(seen.text or "")}
    if isinstance(body.value, str):
        return {"text": storable(body.value)}
    if not isinstance(body.value, bytes):
        return {"typed": to_json(body)}
    try:
        text = body.value.decode()
    except UnicodeDecodeError:
        text = "\0"
    return _base64(body.value) if "\0" in text else {"text": text}


def _base64(content: bytes) -> dict[str, Any]:
    return {"base64": base64.b64encode(content).decode("ascii")}


def case_json(letter: DeadLetter, context: Mapping[str, Any]) -> dict[str, Any]:
    """A dead letter without a key has only itself; so has one that says that it is of a setting which this
    person may not see."""
    whose = dead_letter_queue(letter.setting_key)
    has_key = bool(letter.message_key) and sees_queue(context["request"].user, whose)
    same = {"setting_key": letter.setting_key, "message_key": letter.message_key}
    protocols = FailureProtocol.objects.filter(**same).defer("traceback", "properties")
    chapters = DeadLetter.objects.filter(**same) if has_key else DeadLetter.objects.filter(pk=letter.pk)
    reports = LetterReport.objects.filter(**same)
    letters = list(with_heads(chapters)[:CASE])
    replays = ReplayItem.objects.filter(letter__in=letters).select_related("job__by").order_by("-pk")
    return {
        "protocols": ProtocolHeadSerializer(protocols[:CASE] if has_key else [], many=True).data,
        "chapters": LetterSerializer(letters, many=True, context=context).data,
        "replays": LetterReplaySerializer(replays[:CASE], many=True).data,
        "redirected": ArrivalSerializer(_redirects(letters, letter, has_key=has_key), many=True).data,
        "reports": LetterReportSerializer(reports[:CASE] if has_key else [], many=True).data,
    }


def _redirects(letters: Sequence[DeadLetter], letter: DeadLetter, *, has_key: bool) -> list[ReplayItem]:
    """Those by which it left, and those by which it came."""
    left = ReplayItem.objects.filter(letter__in=letters, job__action=Action.REDIRECT, state__in=LEFT)
    found = list(left.select_related("job").order_by("-pk")[:CASE])
    if has_key:
        found += redirected_to(letter.setting_key, letter.message_key)[:CASE]
    return sorted(found, key=lambda item: item.pk, reverse=True)


class OneLetter(SeesLetters, Masked, generics.RetrieveAPIView[DeadLetter]):
    """A dead letter with its body and its case file."""

    queryset = DeadLetter.objects.all()
    serializer_class = WholeLetterSerializer

    def get_queryset(self) -> QuerySet[DeadLetter]:
        return letters_for(self.request.user)
