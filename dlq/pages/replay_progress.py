"""How far a replay came, over time: a curve of what had left, by its slices."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from django.db.models import DateTimeField, Max, Min, Sum
from django.db.models.functions import Coalesce, Trunc
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from console.ui.charts.chart import draw
from console.ui.charts.curves import Chart, Curve, Kind
from console.ui.charts.scales import over_time
from dlq.models import ReplayJob

# A job of more slices shows the latest of them.
MOST_SLICES = 50_000
_PIECES = (
    (timedelta(minutes=3), "second"),
    (timedelta(hours=3), "minute"),
    (timedelta(days=7), "hour"),
    (timedelta(days=400), "day"),
    (timedelta.max, "week"),
)


def moved_over_time(job: ReplayJob) -> SafeString:
    """How many messages had left at each time, by the slices that are checked; nothing before the first."""
    moved = job.slices.exclude(checked_at=None)
    last = moved.aggregate(most=Max("number"), first=Min("checked_at"), end=Max("checked_at"))
    if last["first"] is None:
        return SafeString("")
    unit = next(unit for longest, unit in _PIECES if last["end"] - last["first"] <= longest)
    at = Trunc("checked_at", unit, tzinfo=UTC, output_field=DateTimeField())
    some = moved.filter(number__gt=last["most"] - MOST_SLICES).order_by()
    left = Coalesce("left", "moved", 0)
    counts = dict(some.values_list(at).annotate(count=Sum(left)))
    edges, sums = _grown(counts, timedelta(**{f"{unit}s": 1}))
    axis = over_time(edges, timezone.get_current_timezone())
    curve = Curve(gettext("moved"), sums, Kind.AREA, "ok")
    return draw(Chart("moved-over-time", gettext("Messages moved"), axis, [curve]))


def _grown(counts: Mapping[datetime, int], step: timedelta) -> tuple[list[datetime], list[float | None]]:
    """Edges of all pieces from the first to the last one, and the sum until the end of each."""
    first, last = min(counts), max(counts)
    starts = [first + step * index for index in range((last - first) // step + 1)]
    sums = accumulate(counts.get(start, 0) for start in starts)
    return [*starts, last + step], list(sums)
