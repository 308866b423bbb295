"""Whose masks: everybody's but those who have the right to see what settings mask, everywhere or in a
pool."""

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import QuerySet

from agents.models import LaunchSetting
from agents.pools.rights import settings_for
from dlq.dead_letters.rules.masks import Masks
from dlq.models import DeadLetter
from dlq.rights import SEE_MASKED as ACTION

SEE_MASKED = "dlq.can_see_masked"


def masks_for(user: Any) -> Masks:
    """None for who may see everything; else one query more than `everybodys_masks`."""
    if user.has_perm(SEE_MASKED):
        return Masks()
    return _masks(set(settings_for(user, ACTION).order_by().values_list("key", flat=True)))


def everybodys_masks() -> Masks:
    """Of somebody without any right."""
    return _masks(frozenset())


def _masks(seen: Collection[str]) -> Masks:
    """`seen`: keys of settings whose masks do not hold. Lists in the database are older than what checks them
    now."""
    stored = LaunchSetting.objects.order_by().values_list("key", "masked_properties")
    return Masks({key: _names(names) if key not in seen else frozenset() for key, names in stored})


def _names(names: Any) -> frozenset[str]:
    return frozenset(map(str, names)) if isinstance(names, list) else frozenset()


# -- letters by their numbers at the broker, a thousand at a time --------------------------------------------


def letters_numbered(node_id: str, queue: str, numbers: Iterable[int]) -> QuerySet[DeadLetter]:
    """Those of the broker's numbers that the index has of this queue, in any state.

    They lie side by side mostly. Their ends are asked for too: for a list alone PostgreSQL reads all letters
    of the queue while nobody has analysed the table, as an index is that was just rebuilt."""
    wanted = list(numbers)
    if not wanted:
        return DeadLetter.objects.none()
    between = {"orig_message_id__range": (min(wanted), max(wanted))}
    return DeadLetter.objects.filter(node_id=node_id, queue=queue, orig_message_id__among=wanted, **between)
