"""/api/v1/notes/, /known-faults/, /takings/: what people know of dead letters, and who is at work on what.

Reading needs the right to see dead letters of the setting, writing the right to give them back.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import BreakerTrip, LaunchSetting
from agents.services.rights import settings_for
from console.audit.refusals import Audited
from console.rest.errors import ApiProblem, Conflict, Forbidden
from console.rest.pagination import KeysetPages
from contract.properties import dead_letter_queue
from dlq import remarks, rights
from dlq.models import DeadLetter, KnownFault, LetterState, Note, Taking
from dlq.models.letter import BIN_QUEUE
from dlq.models.remark import Remark
from dlq.remarks.about import LONGEST, LONGEST_TICKET

AnyRemark = TypeVar("AnyRemark", bound=Remark)
ABOUT = ("setting", "fingerprint", "message_key")
WHO = ("id", *ABOUT, "by_name", "at")
# Asked for the setting in the view: a pool may grant what no permission does.
ANYBODY: dict[str, tuple[str, ...]] = {"get": (), "post": ()}


def readable(rows: QuerySet[AnyRemark], user: Any) -> QuerySet[AnyRemark]:
    if user.has_perm("dlq.view_deadletter"):
        return rows
    return rows.filter(setting_key__in=settings_for(user, rights.SEE).values("key"))


class RemarkQuery(serializers.Serializer[Any]):
    """What a list may be narrowed to. `open`: only what has not ended (true), or only what has (false)."""

    setting = serializers.CharField(source="setting_key", required=False)
    fingerprint = serializers.CharField(required=False)
    message_key = serializers.CharField(required=False)


class OpenQuery(RemarkQuery):
    open = serializers.BooleanField(required=False, allow_null=True, default=None)


def _have_letters(key: str) -> bool:
    """Of a setting that is gone, for example."""
    in_the_bin = DeadLetter.objects.filter(queue=BIN_QUEUE, state=LetterState.DEAD, setting_key=key)
    return DeadLetter.objects.filter(queue=dead_letter_queue(key)).exists() or in_the_bin.exists()


class AboutSerializer(serializers.Serializer[Any]):
    """`setting`, and of it one `fingerprint` or one `message_key`; without either all of the setting."""

    setting = serializers.CharField(max_length=300)
    fingerprint = serializers.CharField(max_length=64, required=False, default="")
    message_key = serializers.CharField(max_length=255, required=False, default="")

    def validate_setting(self, key: str) -> str:
        known = LaunchSetting.objects.filter(key=key).exists() or _have_letters(key)
        if not known:
            raise serializers.ValidationError("There is no such setting, and no dead letter of one.")
        return key

    def about(self) -> remarks.About:
        wanted = self.validated_data
        return remarks.About(wanted["setting"], wanted["fingerprint"], wanted["message_key"])


class NoteAsk(AboutSerializer):
    text = serializers.CharField(max_length=LONGEST)


class FaultAsk(AboutSerializer):
    """`until` null: until somebody ends it."""

    ticket = serializers.CharField(max_length=LONGEST_TICKET, required=False, default="", allow_blank=True)
    text = serializers.CharField(max_length=LONGEST, required=False, default="", allow_blank=True)
    until = serializers.DateTimeField(required=False, default=None, allow_null=True)


class TakingAsk(AboutSerializer):
    """`trip` alone, or what `setting`, `fingerprint` and `message_key` name."""

    setting = serializers.CharField(max_length=300, required=False, default="")
    trip = serializers.IntegerField(
        min_value=1, max_value=2**63 - 1, required=False, default=None, allow_null=True
    )
    text = serializers.CharField(max_length=LONGEST, required=False, default="", allow_blank=True)

    def validate_setting(self, key: str) -> str:
        return super().validate_setting(key) if key else key

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if (attrs["trip"] is None) == (not attrs["setting"]):
            raise serializers.ValidationError({"setting": "Name a setting or a trip, one of the two."})
        return attrs


class HandOverAsk(serializers.Serializer[Any]):
    """`text` replaces the note, without it the note stays."""

    to = serializers.CharField(max_length=150)
    text = serializers.CharField(
        max_length=LONGEST, required=False, default=None, allow_null=True, allow_blank=True
    )


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


class NewestRemarks(KeysetPages):
    ordering = "-id"


def refused_as(work: Callable[[], AnyRemark | None]) -> AnyRemark | None:
    """Does it; a refusal is answered as what it is."""
    try:
        return work()
    except remarks.RemarkRefused as refused:
        kinds: dict[str, type[ApiProblem]] = {"not_allowed": Forbidden, "exists": Conflict, "ended": Conflict}
        kind = kinds.get(refused.code, ApiProblem)
        raise kind(
            refused.reason, code=refused.code, where="about", what_to_do=refused.what_to_do
        ) from refused


class Notes(generics.ListAPIView[Note]):
    queryset = Note.objects.all()
    serializer_class = NoteSerializer
    pagination_class = NewestRemarks
    filter_backends = ()
    action_permissions = ANYBODY

    def get_queryset(self) -> QuerySet[Note]:
        query = RemarkQuery(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        return readable(super().get_queryset(), self.request.user).filter(**query.validated_data)

    @extend_schema(parameters=[RemarkQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=NoteAsk, responses={201: NoteSerializer})
    def post(self, request: Request) -> Response:
        ask = NoteAsk(data=request.data)
        ask.is_valid(raise_exception=True)
        text, by, now = ask.validated_data["text"], request.user, timezone.now()
        written = refused_as(lambda: remarks.note(ask.about(), text, by=by, now=now))
        return Response(NoteSerializer(written).data, status=status.HTTP_201_CREATED)


class Faults(generics.ListAPIView[KnownFault]):
    """With `open=true` those that mute letters at this moment."""

    queryset = KnownFault.objects.select_related("ended_by")
    serializer_class = FaultSerializer
    pagination_class = NewestRemarks
    filter_backends = ()
    action_permissions = ANYBODY

    def get_queryset(self) -> QuerySet[KnownFault]:
        query = OpenQuery(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        wanted = dict(query.validated_data)
        only, rows = wanted.pop("open"), readable(super().get_queryset(), self.request.user).filter(**wanted)
        active = remarks.active_faults(timezone.now()).values("pk")
        return rows if only is None else rows.filter(pk__in=active) if only else rows.exclude(pk__in=active)

    @extend_schema(parameters=[OpenQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=FaultAsk, responses={201: FaultSerializer})
    def post(self, request: Request) -> Response:
        """Mutes its letters: lists can leave them out, and giving back skips them. 409 when it is known
        already."""
        ask = FaultAsk(data=request.data)
        ask.is_valid(raise_exception=True)
        facts = {name: ask.validated_data[name] for name in ("ticket", "text", "until")}
        now = timezone.now()
        fault = refused_as(lambda: remarks.mute(ask.about(), **facts, by=request.user, now=now))
        return Response(FaultSerializer(fault).data, status=status.HTTP_201_CREATED)


class EndFault(Audited, APIView):
    action_permissions = ANYBODY
    audit_action = "fault_end"

    @extend_schema(request=None, responses=FaultSerializer)
    def post(self, request: Request, pk: int) -> Response:
        fault = get_object_or_404(readable(KnownFault.objects.all(), request.user), pk=pk)
        refused_as(lambda: remarks.end_fault(fault, by=request.user, now=timezone.now()))
        fault.refresh_from_db()
        return Response(FaultSerializer(fault).data)


class Takings(generics.ListAPIView[Taking]):
    queryset = Taking.objects.select_related("handed_to")
    serializer_class = TakingSerializer
    pagination_class = NewestRemarks
    filter_backends = ()
    action_permissions = ANYBODY

    def get_queryset(self) -> QuerySet[Taking]:
        query = OpenQuery(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        wanted = dict(query.validated_data)
        only, rows = wanted.pop("open"), readable(super().get_queryset(), self.request.user).filter(**wanted)
        return rows if only is None else rows.filter(ended_at__isnull=only)

    @extend_schema(parameters=[OpenQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=TakingAsk, responses={201: TakingSerializer})
    def post(self, request: Request) -> Response:
        """409 when somebody has it already."""
        ask = TakingAsk(data=request.data)
        ask.is_valid(raise_exception=True)
        text, number = ask.validated_data["text"], ask.validated_data["trip"]
        trip = get_object_or_404(BreakerTrip.objects.select_related("setting"), pk=number) if number else None
        now = timezone.now()
        taken = refused_as(lambda: remarks.take(ask.about(), text=text, trip=trip, by=request.user, now=now))
        return Response(TakingSerializer(taken).data, status=status.HTTP_201_CREATED)


class HandOver(Audited, APIView):
    action_permissions = ANYBODY
    audit_action = "taking_hand_over"

    @extend_schema(request=HandOverAsk, responses=TakingSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Ends this one and answers the one of the other person."""
        ask = HandOverAsk(data=request.data)
        ask.is_valid(raise_exception=True)
        taking = get_object_or_404(readable(Taking.objects.all(), request.user), pk=pk)
        to = User.objects.filter(username=ask.validated_data["to"], is_active=True).first()
        if to is None:
            raise ApiProblem("There is no such person.", code="no_person", where="to")
        text, now = ask.validated_data["text"], timezone.now()
        given = refused_as(lambda: remarks.hand_over(taking, to, text=text, by=request.user, now=now))
        return Response(TakingSerializer(given).data)


class EndTaking(Audited, APIView):
    action_permissions = ANYBODY
    audit_action = "taking_end"

    @extend_schema(request=None, responses=TakingSerializer)
    def post(self, request: Request, pk: int) -> Response:
        taking = get_object_or_404(readable(Taking.objects.all(), request.user), pk=pk)
        refused_as(lambda: remarks.end_taking(taking, by=request.user, now=timezone.now()))
        taking.refresh_from_db()
        return Response(TakingSerializer(taking).data)
