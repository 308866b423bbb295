"""/api/v1/notes/, /known-faults/, /takings/: what people know of dead letters, and who is at work on what.

Reading needs the right to see dead letters of the setting, writing the right to give them back.
"""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from agents.models import LaunchSetting
from console.operations.operation import Operation, perform
from console.operations.rest import Answer, OperationsMixin, as_problems, performing
from console.rest.lists import ByKey, asked_in
from console.rest.serializers import QuerySerializer
from contract.names import dead_letter_queue
from dlq.annotations import (
    LONGEST,
    LONGEST_TICKET,
    AddNote,
    AnyAnnotation,
    EndTaking,
    HandOver,
    MuteLetters,
    Take,
    Unmute,
    of_trip,
    readable,
)
from dlq.models import DeadLetter, KnownFault, LetterState, Note, Taking
from dlq.models.annotation import active_faults
from dlq.models.dead_letter import BIN_QUEUE

ABOUT = ("setting", "fingerprint", "message_key")
WHO = ("id", *ABOUT, "by_name", "at")


class RemarkQuery(QuerySerializer):
    """Filters of the list. `open`: true: only open entries; false: only ended entries."""

    setting = serializers.CharField(source="setting_key", required=False)
    fingerprint = serializers.CharField(required=False)
    message_key = serializers.CharField(required=False)


class OpenQuery(RemarkQuery):
    open = serializers.BooleanField(required=False, allow_null=True, default=None)


def _have_letters(key: str) -> bool:
    """Says so of a setting that is gone, for example."""
    in_trash = DeadLetter.objects.filter(queue=BIN_QUEUE, state=LetterState.DEAD, setting_key=key)
    return DeadLetter.objects.filter(queue=dead_letter_queue(key)).exists() or in_trash.exists()


class AboutSerializer(serializers.Serializer[Any]):
    """`setting`, optionally with one `fingerprint` or one `message_key`. Without them: the whole setting."""

    setting = serializers.CharField(max_length=300)
    fingerprint = serializers.CharField(max_length=64, required=False, default="")
    message_key = serializers.CharField(max_length=255, required=False, default="")

    def validate_setting(self, key: str) -> str:
        known = LaunchSetting.objects.filter(key=key).exists() or _have_letters(key)
        if not known:
            raise serializers.ValidationError("Unknown setting: no setting and no dead letter has this key.")
        return key

    def columns(self) -> dict[str, Any]:
        """Returns columns of the row that is about it."""
        said = self.validated_data
        named = {name: said[name] for name in ("fingerprint", "message_key")}
        return {"setting_key": said["setting"], **named}

    def inputs(self) -> dict[str, Any]:
        """What it says besides."""
        return {name: value for name, value in self.validated_data.items() if name not in ABOUT}


class NoteAsk(AboutSerializer):
    text = serializers.CharField(max_length=LONGEST)


class FaultAsk(AboutSerializer):
    """`until` null: no end date."""

    ticket = serializers.CharField(max_length=LONGEST_TICKET, required=False, default="", allow_blank=True)
    text = serializers.CharField(max_length=LONGEST, required=False, default="", allow_blank=True)
    until = serializers.DateTimeField(required=False, default=None, allow_null=True)


class TakingAsk(AboutSerializer):
    """Either `trip`, or `setting` with an optional `fingerprint` or `message_key`."""

    setting = serializers.CharField(max_length=300, required=False, default="")
    trip = serializers.IntegerField(
        min_value=1, max_value=2**63 - 1, required=False, default=None, allow_null=True
    )
    text = serializers.CharField(max_length=LONGEST, required=False, default="", allow_blank=True)

    def validate_setting(self, key: str) -> str:
        return super().validate_setting(key) if key else key

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if (attrs["trip"] is None) == (not attrs["setting"]):
            raise serializers.ValidationError({"setting": "Send either a setting or a trip."})
        return attrs

    def columns(self) -> dict[str, Any]:
        """Raises Http404."""
        trip = self.validated_data["trip"]
        return super().columns() if trip is None else of_trip(trip)

    def inputs(self) -> dict[str, Any]:
        return {"text": self.validated_data["text"]}


class NoteSerializer(serializers.ModelSerializer[Note]):
    setting = serializers.CharField(source="setting_key")

    class Meta:
        model = Note
        fields = (*WHO, "text")


class FaultSerializer(serializers.ModelSerializer[KnownFault]):
    setting = serializers.CharField(source="setting_key")
    ended_by = serializers.CharField(source="ended_by.username", default=None)

    class Meta:
        model = KnownFault
        fields = (*WHO, "ticket", "text", "until", "ended_at", "ended_by")


class TakingSerializer(serializers.ModelSerializer[Taking]):
    setting = serializers.CharField(source="setting_key")
    handed_to = serializers.CharField(source="handed_to.username", default=None)

    class Meta:
        model = Taking
        fields = (*WHO, "trip", "text", "ended_at", "handed_to")


class _Annotations(ByKey, OperationsMixin, mixins.ListModelMixin, GenericViewSet[AnyAnnotation]):
    """`ask` says what a new one is about."""

    # Asked for the setting: a pool may grant what no permission does.
    action_permissions: ClassVar[dict[str, tuple[str, ...]]] = {"list": (), "create": ()}
    ask: ClassVar[type[AboutSerializer]]
    query: ClassVar[type[RemarkQuery]] = OpenQuery

    def get_queryset(self) -> QuerySet[AnyAnnotation]:
        rows = readable(super().get_queryset(), self.request.user)
        if self.action != "list":
            return rows
        wanted = asked_in(self.request, self.query)
        is_open = wanted.pop("open", None)
        rows = rows.filter(**wanted)
        return rows if is_open is None else self.only(rows, is_open)

    def only(self, rows: QuerySet[AnyAnnotation], is_open: bool) -> QuerySet[AnyAnnotation]:
        return rows.filter(ended_at__isnull=is_open)

    def create(self, request: Request) -> Response:
        ask = self.ask(data=request.data)
        ask.is_valid(raise_exception=True)
        operation = self.addition
        assert operation is not None
        annotation = operation.on.rows().model(**ask.columns())
        with as_problems("about"):
            made = perform(operation, annotation, request.user, **ask.inputs()).made
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)


def _described(
    query: type[RemarkQuery],
    ask: type[AboutSerializer],
    answer: type[serializers.BaseSerializer[Any]],
    addition: type[Operation[Any]],
) -> Any:
    return extend_schema_view(
        list=extend_schema(parameters=[query]),
        create=extend_schema(
            request=ask, responses={status.HTTP_201_CREATED: answer}, extensions=performing(addition)
        ),
    )


@_described(RemarkQuery, NoteAsk, NoteSerializer, AddNote)
class Notes(_Annotations[Note]):
    """Notes about settings, error groups and messages."""

    queryset = Note.objects.all()
    serializer_class = NoteSerializer
    ask, query, addition = NoteAsk, RemarkQuery, AddNote


@_described(OpenQuery, FaultAsk, FaultSerializer, MuteLetters)
class Faults(_Annotations[KnownFault]):
    """Known errors. With `open=true` only those that mute dead letters now. A new one mutes its dead letters:
    lists can hide them, and replays skip them. 409 if it exists already."""

    queryset = KnownFault.objects.select_related("ended_by")
    serializer_class = FaultSerializer
    ask, addition = FaultAsk, MuteLetters
    operations = {Unmute: None}

    def only(self, rows: QuerySet[KnownFault], is_open: bool) -> QuerySet[KnownFault]:
        active = active_faults(timezone.now()).values("pk")
        return rows.filter(pk__in=active) if is_open else rows.exclude(pk__in=active)


@_described(OpenQuery, TakingAsk, TakingSerializer, Take)
class Takings(_Annotations[Taking]):
    """Assignments. 409 if somebody is assigned already."""

    queryset = Taking.objects.select_related("handed_to")
    serializer_class = TakingSerializer
    ask, addition = TakingAsk, Take
    operations = {HandOver: Answer(TakingSerializer), EndTaking: None}
