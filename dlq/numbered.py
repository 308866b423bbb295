"""Letters by their numbers at the broker, a thousand at a time."""

from collections.abc import Iterable

from django.db.models import QuerySet

from dlq.models import DeadLetter


def letters_numbered(node_id: str, queue: str, numbers: Iterable[int]) -> QuerySet[DeadLetter]:
    """Those of the broker's numbers that the index has of this queue, in any state.

    They lie side by side mostly. Their ends are asked for too: for a list alone PostgreSQL reads all letters
    of the queue while nobody has analysed the table, as an index is that was just rebuilt."""
    wanted = list(numbers)
    if not wanted:
        return DeadLetter.objects.none()
    between = {"orig_message_id__range": (min(wanted), max(wanted))}
    return DeadLetter.objects.filter(node_id=node_id, queue=queue, orig_message_id__among=wanted, **between)
