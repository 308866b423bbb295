"""Searching the audit: one filter for the page and the REST interface. Every question is answered by an
index."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from console import hooks
from console.audit.models import AuditEntry, AuditResult
from console.audit.text import ACTIONS, codes_of, listed_actions
from console.filters import IdFilter, ListFilter, OneOfFilter, SpanFilter, TextFilter
from console.lists.keyset import BIGGEST_KEY


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
    person = TextFilter(_("Person (exactly)"), 150, field_name="by_name")
    action = ActionFilter(_("Action"), listed_actions)
    setting = TextFilter(_("Setting (exactly)"), 61, field_name="setting_key")
    result = OneOfFilter(_("Result"), AuditResult.choices)
    span = SpanFilter(field_name="at")
    operation = IdFilter(label=_("Operation"))
    letter = django_filters.NumberFilter(
        label=_("Dead letter"), method="of_letter", min_value=1, max_value=BIGGEST_KEY, decimal_places=0
    )
    target = TextFilter(_("Target"), 300)
    since = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte", label=_("Since"))
    until = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt", label=_("Before"))
    quiet = ("operation", "letter", "target", "since", "until")

    def of_letter(self, rows: QuerySet[AuditEntry], name: str, value: Any) -> QuerySet[AuditEntry]:
        """Returns what was done to this letter alone, and with the operations that it was part of."""
        letter = int(value)
        operations = [each for found in hooks.operations_of_letter(letter) for each in found]
        return rows.filter(Q(letter=letter) | Q(operation__in=operations))
