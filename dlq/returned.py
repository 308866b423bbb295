"""Messages that were given back and then handled well, for who asks whether an activation finished well."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Count

from dlq.models import LetterReport
from dlq.models.report import LetterResult


def handled_well(activation: UUID, keys: Collection[str]) -> dict[str, int]:
    """{message key: how often} in this activation."""
    reports = LetterReport.objects.filter(
        activation_uuid=activation, message_key__in=keys, result=LetterResult.HANDLED, verified=True
    )
    return dict(reports.order_by().values_list("message_key").annotate(Count("pk")))
