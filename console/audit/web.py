"""The audit: who did what, or was refused, newest first; searched by person, action, setting, result and
time, by one filter for the page and REST. Every question is answered by an index."""

from dataclasses import dataclass
from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import NoReverseMatch
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import generics, serializers

from console import hooks
from console.audit.models import AuditEntry, AuditResult
from console.audit.saves import change_words
from console.audit.text import (
    ACTIONS,
    PAGES,
    Text,
    action_words,
    codes_of,
    count_words,
    detail_words,
    first_code,
    listed_actions,
    scope_words,
)
from console.filters import IdFilter, ListFilter, OneOfFilter, SpanFilter, TextFilter
from console.lists.keyset import BIGGEST_KEY, counted, list_page, numbered_page
from console.rest.lists import ByKey, refuse_unknown
from console.ui.page import StateLabel, link_to, needs


class ActionField(django_filters.fields.ChoiceField):
    """Offers each name once and takes every code."""

    def valid_value(self, value: Any) -> bool:
        return value in ACTIONS


class ActionFilter(OneOfFilter):
    """Holds what was done, with the attempts at it that have a code of their own."""

    field_class = ActionField

    def filter(self, rows: QuerySet[AuditEntry], value: Any) -> QuerySet[AuditEntry]:
        return rows.filter(action__in=codes_of(value)) if value else rows


class AuditFilter(ListFilter):
    person = TextFilter(_("User (exact name)"), 150, field_name="by_name")
    action = ActionFilter(_("Action"), listed_actions)
    setting = TextFilter(_("Setting (exact key)"), 61, field_name="setting_key")
    result = OneOfFilter(_("Result"), AuditResult.choices)
    span = SpanFilter(field_name="at")
    operation = IdFilter(label=_("Operation"))
    letter = django_filters.NumberFilter(
        label=_("Message number"), method="of_letter", min_value=1, max_value=BIGGEST_KEY, decimal_places=0
    )
    target = TextFilter(_("Object"), 300)
    since = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte", label=_("Since"))
    until = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt", label=_("Before"))
    quiet = ("operation", "letter", "target", "since", "until")

    def of_letter(self, rows: QuerySet[AuditEntry], name: str, value: Any) -> QuerySet[AuditEntry]:
        """Returns what was done to this letter alone, and with the operations that it was part of."""
        letter = int(value)
        operations = [each for found in hooks.operations_of_letter(letter) for each in found]
        return rows.filter(Q(letter=letter) | Q(operation__in=operations))


VIEW = "console.view_auditentry"

RESULTS: dict[str, StateLabel] = {
    AuditResult.DONE: StateLabel(AuditResult.DONE.label, "ok", "ok"),
    AuditResult.REFUSED: StateLabel(AuditResult.REFUSED.label, "warn", "warn"),
    AuditResult.FAILED: StateLabel(AuditResult.FAILED.label, "bad", "bad"),
}
# Kept out of the details: columns tell them, and the changes.
TOLD = ("setting", "counts", "reason", "scope", "about", "changes")


@dataclass(frozen=True, slots=True)
class Row:
    entry: AuditEntry
    action: Text
    code: str
    scope: Text
    result: StateLabel
    url: str
    counts: list[tuple[Any, Any]]
    changes: list[tuple[Text, str]]
    detail: list[tuple[Text, str]]
    edited: hooks.MessageChanges | None = None


@require_safe
@needs(VIEW)
def audit_page(request: HttpRequest) -> HttpResponseBase:
    filters = AuditFilter(request.GET, AuditEntry.objects.all())
    entries = filters.qs
    listed = numbered_page(request, entries.select_related("by"))
    edited = {
        pk: each for found in hooks.message_changes(listed.rows, request.user) for pk, each in found.items()
    }
    return list_page(
        request,
        "console/audit.html",
        title=gettext("Audit"),
        section="audit",
        filters=filters,
        listed=listed,
        rows=[row_of(entry, edited.get(entry.pk)) for entry in listed.rows],
        told=gettext("%(total)s in this list") % {"total": counted(entries)},
    )


def row_of(entry: AuditEntry, edited: hooks.MessageChanges | None = None) -> Row:
    return Row(
        entry,
        action_words(entry.action),
        first_code(entry.action),
        scope_words(entry.scope),
        RESULTS[entry.result],
        _url(entry),
        count_words(entry.counts),
        change_words(entry.action, entry.detail),
        [detail_words(name, value) for name, value in _pairs(entry.detail)],
        edited,
    )


def _pairs(detail: Any) -> list[tuple[str, Any]]:
    pairs = detail.items() if isinstance(detail, dict) else []
    return [(name, value) for name, value in pairs if value not in ("", None, [], {}) and name not in TOLD]


def _url(entry: AuditEntry) -> str:
    """Returns the page of what it was done to, where it has one."""
    target = PAGES.get("letter" if entry.letter is not None else entry.target.partition(":")[0])
    if target is None:
        return ""
    key = getattr(entry, target.field) if target.field else entry.target.partition(":")[2]
    try:
        return link_to(target.name, key, target.query) if key not in (None, "") else ""
    except NoReverseMatch:  # somebody named what there cannot be
        return ""


class AuditSerializer(serializers.ModelSerializer[AuditEntry]):
    by = serializers.CharField(source="by_name")
    setting = serializers.CharField(source="setting_key")

    class Meta:
        model = AuditEntry
        fields = (
            "id", "at", "by", "action", "result", "target", "operation", "setting", "letter", "scope",
            "reason",
            "counts", "detail",
        )  # fmt: skip


class AuditSchema(AutoSchema):
    """Codes of actions are declared where the operations are: all of them are known when it is asked for."""

    def get_override_parameters(self) -> list[Any]:
        return [
            OpenApiParameter("person", str, description="Exact user name."),
            OpenApiParameter(
                "action",
                str,
                enum=list(ACTIONS),
                description="Where several codes mean the same, the first one finds all of them.",
            ),
            OpenApiParameter("setting", str, description="Key of a launch setting."),
            OpenApiParameter("result", str, enum=["done", "refused", "failed"]),
            OpenApiParameter("operation", OpenApiTypes.UUID, description="Id of a replay or of another job."),
            OpenApiParameter(
                "letter", int, description="Number of a dead letter: its entries and those of its replays."
            ),
            OpenApiParameter("target", str),
            OpenApiParameter("since", OpenApiTypes.DATETIME, description="Inclusive."),
            OpenApiParameter("until", OpenApiTypes.DATETIME, description="Exclusive."),
            OpenApiParameter("span", str, enum=["1h", "1d", "7d"]),
        ]


class Audit(ByKey, generics.ListAPIView[AuditEntry]):
    """Lists audit entries. The messages of an entry with an `operation` are those of that replay."""

    queryset = AuditEntry.objects.all()
    serializer_class = AuditSerializer
    schema = AuditSchema()

    def get_queryset(self) -> QuerySet[AuditEntry]:
        refuse_unknown(self.request.query_params, AuditFilter.base_filters)
        wanted = AuditFilter(self.request.query_params, super().get_queryset())
        if "action" in wanted.errors:
            raise serializers.ValidationError(
                {"action": f"Unknown action; known actions: {', '.join(ACTIONS)}."}
            )
        if not wanted.is_valid():
            raise serializers.ValidationError(wanted.errors)
        found: QuerySet[AuditEntry] = wanted.qs
        return found
