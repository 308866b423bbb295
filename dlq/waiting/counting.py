"""How many messages of an action have come to what."""

from collections.abc import Mapping

from django.db.models import Count

from dlq.models.waiting import OPEN_ACTIONS, WaitingAction


def counts_of(action: WaitingAction) -> Mapping[str, int]:
    """By fate; counted while it is under way, then kept with it. `missing`: not there any more when it was
    asked."""
    kept = {name: int(count) for name, count in action.counts.items() if isinstance(count, int)}
    if action.state not in OPEN_ACTIONS or action.whole:
        return kept
    rows = action.items.order_by().values_list("fate").annotate(Count("pk"))
    return kept | {fate: int(count) for fate, count in rows}
