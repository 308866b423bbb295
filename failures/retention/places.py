"""Activations by their place among those of a setting."""

from django.db.models import Q, QuerySet

from agents.models import Activation
from failures.retention.rule import Place, Range


def up_to(rows: QuerySet[Activation], of: Range) -> QuerySet[Activation]:
    if of.up_to is None:
        return rows
    number, started_at = of.up_to
    return rows.filter(Q(number__lt=number) | Q(number=number, started_at__lte=started_at))


def past(place: Place) -> Q:
    number, started_at = place
    return Q(number__gt=number) | Q(number=number, started_at__gt=started_at)
