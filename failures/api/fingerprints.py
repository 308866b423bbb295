"""/api/v1/fingerprints/: kinds of failures over everything, what is known of them, merged and split."""

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.viewsets import GenericViewSet

from console.operations.rest import OperationsMixin
from console.rest.lists import ByKey, asked_in
from console.rest.serializers import QuerySerializer
from failures.error_groups import merges
from failures.error_groups.operations import FINGERPRINT_OPERATIONS, FINGERPRINTS
from failures.error_groups.queries import hours_of
from failures.error_groups.regressions import older_since
from failures.models import Fingerprint, KnownError

MOST_ROWS = 200
HOURS = 7 * 24


class KnownSerializer(serializers.ModelSerializer[KnownError]):
    by = serializers.CharField(source="changed_by.username", read_only=True, default=None)

    class Meta:
        model = KnownError
        said = ("cause", "advice", "runbook_url", "owner", "ticket")
        fields = (*said, "fixed_at", "fixed_in", "returned_at", "changed_at", "by")
        read_only_fields = fields


class FingerprintSerializer(serializers.ModelSerializer[Fingerprint]):
    """`count`, `first_at` and `last_at` exclude merged groups and include the parts split off for single
    settings (`part_of`, `part_setting`). `recent_at`: the latest failure of all of them."""

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


class OlderSerializer(serializers.Serializer[Any]):
    version = serializers.CharField()
    servers = serializers.ListField(child=serializers.CharField())


class WholeFingerprintSerializer(FingerprintSerializer):
    """`merged`: groups merged into this one. `hours`: failures of all of them in each of the last 168 hours,
    the current hour last. `history`: up to 200 changes, newest first. `older`: versions of the agent older
    than `fixed_in` that still failed since it was fixed, and on which servers."""

    merged = serializers.SerializerMethodField()
    hours = serializers.SerializerMethodField()
    history = serializers.SerializerMethodField()
    older = serializers.SerializerMethodField()

    class Meta(FingerprintSerializer.Meta):
        fields = (*FingerprintSerializer.Meta.fields, "merged", "hours", "history", "older")
        read_only_fields = fields

    def get_merged(self, row: Fingerprint) -> list[str]:
        return merges.members_of(row.pk)[1:]

    def get_hours(self, row: Fingerprint) -> list[int]:
        now, members = timezone.now(), merges.members_of(row.pk)
        hours = hours_of(members, now - timedelta(hours=HOURS - 1), now)
        return [sum(column) for column in zip(*(hours[each] for each in members), strict=True)]

    @extend_schema_field(OlderSerializer(many=True))
    def get_older(self, row: Fingerprint) -> Any:
        known = getattr(row, "known", None)
        found = older_since(known, merges.members_of(row.pk)) if known and not row.merged_into_id else []
        return [asdict(each) for each in found]

    @extend_schema_field(serializers.ListField(child=serializers.DictField()))
    def get_history(self, row: Fingerprint) -> Any:
        return list(row.changes.order_by("-id").values("what", "detail", "by_name", "at")[:MOST_ROWS])


class FingerprintQuery(QuerySerializer):
    """Filters of the list. Merged groups are listed only with `merged`."""

    setting = serializers.CharField(required=False, max_length=200)
    exception = serializers.CharField(required=False, max_length=255, help_text="Part of the exception type.")
    merged = serializers.BooleanField(required=False, default=False, help_text="Include merged groups.")


@extend_schema_view(list=extend_schema(parameters=[FingerprintQuery]))
class FingerprintViewSet(
    ByKey, OperationsMixin, mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Fingerprint]
):
    """Most recent first, in pages by key."""

    queryset = FINGERPRINTS.rows()
    serializer_class = WholeFingerprintSerializer
    operations = dict.fromkeys(FINGERPRINT_OPERATIONS)
    lookup_value_regex = "[^/]+"
    ordering = ("-recent_at", "-fingerprint")

    def get_serializer_class(self) -> type[FingerprintSerializer]:
        return FingerprintSerializer if self.action == "list" else WholeFingerprintSerializer

    def get_queryset(self) -> QuerySet[Fingerprint]:
        rows = super().get_queryset()
        if self.action != "list":
            return rows
        wanted = asked_in(self.request, FingerprintQuery)
        if not wanted["merged"]:
            rows = rows.filter(merged_into=None)
        if exception := wanted.get("exception"):
            rows = rows.filter(exception_type__icontains=exception)
        if setting := wanted.get("setting"):
            rows = merges.in_setting(rows, setting)
        return rows
