"""Rows that several pages show, read in few queries."""

from collections import defaultdict
from collections.abc import Iterable

from agents.models import Run
from agents.models.activation import OPEN_ACTIVATIONS


def open_runs(settings: Iterable[int]) -> dict[int, list[Run]]:
    """The runs of the open activations of these settings that are wanted or not closed yet, by setting."""
    runs = Run.objects.filter(activation__setting__in=list(settings), activation__state__in=OPEN_ACTIVATIONS)
    found: dict[int, list[Run]] = defaultdict(list)
    for run in runs.select_related("server", "activation").order_by("server__name", "epoch"):
        found[run.activation.setting_id].append(run)
    return found
