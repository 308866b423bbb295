"""Failures of activations by server, as small bars: one query for a page of activations."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Sum
from django.utils.translation import gettext as _

from agents.models import Activation, Run
from console.ui.amounts import number
from console.ui.sparkline import Spark, spark

# More bars than people can tell apart: of a larger pool those with the most failures.
MOST_BARS = 30
NAMED = 6


@dataclass(frozen=True, slots=True)
class ByServer:
    """`words` name the servers with the most failures."""

    spark: Spark
    words: str

    @property
    def total(self) -> int:
        return self.spark.sum


def failures_by_server(activations: Sequence[Activation]) -> dict[UUID, ByServer]:
    """By activation; those in which nothing failed are left out."""
    rows = Run.objects.filter(activation__in=[activation.pk for activation in activations]).order_by()
    counts: dict[UUID, dict[str, int]] = defaultdict(dict)
    for key, server, failed in rows.values_list("activation_id", "server__name").annotate(sum=Sum("failed")):
        counts[key][server] = failed
    return {key: _drawn(of_one) for key, of_one in counts.items() if any(of_one.values())}


def _drawn(counts: dict[str, int]) -> ByServer:
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{server}: {number(count)}" for server, count in most[:NAMED] if count]
    left_out = sum(1 for _server, count in most[NAMED:] if count)
    if left_out:
        words.append(_("and %(n)s other servers") % {"n": number(left_out)})
    shown = dict(most[:MOST_BARS])
    return ByServer(spark([shown[server] for server in sorted(shown)], going_on=False), ", ".join(words))
