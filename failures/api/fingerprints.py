"""/api/v1/fingerprints/: kinds of failures over everything, what is known of them, merged and split."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from console.rest.errors import Conflict
from console.rest.pagination import KeysetPages
from console.rest.serializers import BodySerializer, QuerySerializer, check_no_body
from failures.fingerprints import book, merging, parts
from failures.fingerprints.occurring import in_setting
from failures.fingerprints.refusing import FingerprintRefused
from failures.models import Advice, Fingerprint, KnownError
from failures.tallies.reading import hours_of

MOST_ROWS = 200
HOURS = 7 * 24
WRITE = ("failures.view_fingerprint", "failures.can_know_errors")
MERGE = ("failures.view_fingerprint", "failures.can_merge_fingerprints")


class KnownSerializer(serializers.ModelSerializer[KnownError]):
    by = serializers.CharField(source="changed_by.username", read_only=True, default=None)

    class Meta:
        model = KnownError
        said = ("cause", "advice", "runbook_url", "owner", "ticket")
        fields = (*said, "fixed_at", "fixed_in", "returned_at", "changed_at", "by")
        read_only_fields = fields


class FingerprintSerializer(serializers.ModelSerializer[Fingerprint]):
    """`count`, `first_at`, `last_at` are its own, without those merged into it, with those of its settings
    that were split off (`part_of`, `part_setting`); `recent_at` is the last of them all."""

    known = KnownSerializer(read_only=True, default=None)
    returned = serializers.SerializerMethodField()

    class Meta:
        model = Fingerprint
        fields: tuple[str, ...] = (
            "fingerprint",
            "exception_type",
            "place",
            "headline",
            "count",
            "first_at",
            "last_at",
            "recent_at",
            "received_at",
            "merged_into",
            "part_of",
            "part_setting",
            "known",
            "returned",
        )
        read_only_fields = fields

    def get_returned(self, row: Fingerprint) -> bool:
        known = getattr(row, "known", None)
        return known is not None and known.returned


class WholeFingerprintSerializer(FingerprintSerializer):
    """`merged`: those merged into it. `hours`: how many in each of the last 168 hours, all of them together,
    the one that goes on last. `history`: at most 200 changes, newest first."""

    merged = serializers.SerializerMethodField()
    hours = serializers.SerializerMethodField()
    history = serializers.SerializerMethodField()

    class Meta(FingerprintSerializer.Meta):
        fields = (*FingerprintSerializer.Meta.fields, "merged", "hours", "history")
        read_only_fields = fields

    def get_merged(self, row: Fingerprint) -> list[str]:
        return merging.members_of(row.pk)[1:]

    def get_hours(self, row: Fingerprint) -> list[int]:
        now, members = timezone.now(), merging.members_of(row.pk)
        hours = hours_of(members, now - timedelta(hours=HOURS - 1), now)
        return [sum(column) for column in zip(*(hours[each] for each in members), strict=True)]

    @extend_schema_field(serializers.ListField(child=serializers.DictField()))
    def get_history(self, row: Fingerprint) -> Any:
        return list(row.changes.order_by("-id").values("what", "detail", "by_name", "at")[:MOST_ROWS])


class FingerprintQuery(QuerySerializer):
    """What the list may be narrowed to. Without `merged` only those that stand for themselves are listed."""

    setting = serializers.CharField(required=False, max_length=200)
    exception = serializers.CharField(
        required=False, max_length=255, help_text="A part of the exception's type."
    )
    merged = serializers.BooleanField(required=False, default=False, help_text="Merged ones too.")


class Saying(BodySerializer):
    """Replaces what is written."""

    cause = serializers.CharField(required=False, allow_blank=True, default="")
    advice = serializers.ChoiceField(choices=Advice.choices, required=False, allow_blank=True, default="")
    runbook_url = serializers.CharField(required=False, allow_blank=True, default="")
    owner = serializers.CharField(required=False, allow_blank=True, default="")
    ticket = serializers.CharField(required=False, allow_blank=True, default="")


class Fixing(BodySerializer):
    version = serializers.CharField(required=False, allow_blank=True, default="", help_text="Of the agent.")


class Naming(BodySerializer):
    other = serializers.CharField(max_length=64, help_text="The other fingerprint.")


class PartingOff(BodySerializer):
    setting = serializers.CharField(max_length=200, help_text="The key of a setting in which it failed.")


class MostRecent(KeysetPages):
    ordering = ("-recent_at", "-fingerprint")


@extend_schema_view(
    list=extend_schema(parameters=[FingerprintQuery]),
    retrieve=extend_schema(responses=WholeFingerprintSerializer),
)
class FingerprintViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Fingerprint]):
    """The most recent first, in pages by key."""

    queryset = Fingerprint.objects.select_related("known__changed_by")
    serializer_class = FingerprintSerializer
    lookup_value_regex = "[^/]+"
    pagination_class = MostRecent
    filter_backends = ()
    action_permissions = {"known": WRITE, "fixed": WRITE, "not_fixed": WRITE, "merge": MERGE, "split": MERGE}
    action_permissions |= {"part_off": MERGE, "join": MERGE}

    def get_serializer_class(self) -> type[FingerprintSerializer]:
        return FingerprintSerializer if self.action == "list" else WholeFingerprintSerializer

    def get_queryset(self) -> QuerySet[Fingerprint]:
        rows = super().get_queryset()
        if self.action != "list":
            return rows
        query = FingerprintQuery(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        wanted = query.validated_data
        if not wanted["merged"]:
            rows = rows.filter(merged_into=None)
        if exception := wanted.get("exception"):
            rows = rows.filter(exception_type__icontains=exception)
        if setting := wanted.get("setting"):
            rows = in_setting(rows, setting)
        return rows

    @extend_schema(request=Saying, responses=WholeFingerprintSerializer)
    @action(detail=True, methods=["post"])
    def known(self, request: Request, pk: str) -> Response:
        """Writes what is known, for it and those merged with it."""
        said = self._given(Saying)
        return self._changed(lambda row, **who: book.write(row.pk, book.Known(**said), **who))

    @extend_schema(request=Fixing, responses=WholeFingerprintSerializer)
    @action(detail=True, methods=["post"])
    def fixed(self, request: Request, pk: str) -> Response:
        """From now on it should not come again; if it does, it has returned. Failures of agents older than
        `version` do not count."""
        version = self._given(Fixing)["version"]
        return self._changed(lambda row, **who: book.fixed(row.pk, version, **who))

    @extend_schema(request=None, responses=WholeFingerprintSerializer)
    @action(detail=True, methods=["post"], url_path="not-fixed")
    def not_fixed(self, request: Request, pk: str) -> Response:
        check_no_body(request)
        return self._changed(lambda row, **who: book.not_fixed(row.pk, **who))

    @extend_schema(request=Naming, responses=WholeFingerprintSerializer)
    @action(detail=True, methods=["post"])
    def merge(self, request: Request, pk: str) -> Response:
        """`other` becomes part of this one; both keep their counts."""
        other = self._given(Naming)["other"]
        return self._changed(lambda row, **who: merging.merge(other, row.pk, **who))

    @extend_schema(request=Naming, responses=WholeFingerprintSerializer)
    @action(detail=True, methods=["post"])
    def split(self, request: Request, pk: str) -> Response:
        """`other` stands for itself again."""
        other = self._given(Naming)["other"]
        return self._changed(lambda row, **who: merging.split(other, of=row.pk, **who))

    @extend_schema(request=PartingOff, responses=WholeFingerprintSerializer)
    @action(detail=True, methods=["post"], url_path="part-off")
    def part_off(self, request: Request, pk: str) -> Response:
        """Its failures in that setting become a kind of their own, now and from now on."""
        setting = self._given(PartingOff)["setting"]
        return self._changed(lambda row, **who: parts.part_off(row.pk, setting, **who))

    @extend_schema(request=None, responses=WholeFingerprintSerializer)
    @action(detail=True, methods=["post"])
    def join(self, request: Request, pk: str) -> Response:
        """One that was split off by its setting is none any more."""
        check_no_body(request)
        return self._changed(lambda row, **who: parts.join(row.pk, **who))

    def _given(self, serializer: type[BodySerializer]) -> dict[str, Any]:
        given = serializer(data=self.request.data)
        given.is_valid(raise_exception=True)
        return dict(given.validated_data)

    def _changed(self, change: Any) -> Response:
        row = self.get_object()
        try:
            change(row, by=self.request.user, now=timezone.now())
        except FingerprintRefused as refused:
            what_to_do = "Look at the fingerprint again."
            raise Conflict(
                str(refused), code="refused", where=f"fingerprints/{row.pk}", what_to_do=what_to_do
            ) from refused
        return Response(self.get_serializer(self.get_object()).data)
