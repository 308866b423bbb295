"""Searching the audit: one filter for the page and the REST interface. Every question is answered by an
index."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from console import hooks
from console.audit.models import AuditEntry, AuditResult
from console.audit.text import ACTIONS, codes_of, listed_actions
from console.filters import SpanFilter

BIGGEST = 2**63 - 1


class ActionField(django_filters.fields.ChoiceField):
    """Offers each name once and takes every code."""

    def valid_value(self, value: Any) -> bool:
        return value in ACTIONS


class ActionFilter(django_filters.ChoiceFilter):
    """What was done, with the attempts at it that have a code of their own."""

    field_class = ActionField

    def filter(self, rows: QuerySet[AuditEntry], value: Any) -> QuerySet[AuditEntry]:
        return rows.filter(action__in=codes_of(value)) if value else rows


class AuditFilter(django_filters.FilterSet):
    person = django_filters.CharFilter(field_name="by_name", label=_("Person (exactly)"), max_length=150)
    action = ActionFilter(choices=listed_actions, label=_("Action"), empty_label=_("all"))
    setting = django_filters.CharFilter(field_name="setting_key", label=_("Setting (exactly)"), max_length=61)
    result = django_filters.ChoiceFilter(choices=AuditResult.choices, label=_("Result"), empty_label=_("all"))
    span = SpanFilter(field_name="at")
    operation = django_filters.UUIDFilter(label=_("Operation"))
    letter = django_filters.NumberFilter(
        label=_("Dead letter"), method="of_letter", min_value=1, max_value=BIGGEST, decimal_places=0
    )
    target = django_filters.CharFilter(label=_("Target"), max_length=300)
    since = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte", label=_("Since"))
    until = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt", label=_("Before"))
    # Shown in the form only when a link has set them.
    quiet = ("operation", "letter", "target", "since", "until")

    class Meta:
        model = AuditEntry
        fields: list[str] = []

    def of_letter(self, rows: QuerySet[AuditEntry], name: str, value: Any) -> QuerySet[AuditEntry]:
        """What was done to this letter alone, and with the operations that it was part of."""
        letter = int(value)
        operations = [each for found in hooks.operations_of_letter(letter) for each in found]
        return rows.filter(Q(letter=letter) | Q(operation__in=operations))
