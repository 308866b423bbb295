"""Describes which dead letters somebody may see, and which of them a filter finds: the one way to dead
letters for pages, REST, export and jobs. No request is needed: a worker asks with the rights of who began the
job.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, QueryDict

from agents.pools.rights import settings_for
from contract.names import BIN, dead_letter_queue
from dlq.dead_letters.queries import ranges
from dlq.models import DeadLetter
from dlq.rights import SEE
from dlq.search.filter import LetterFilter
from dlq.search.newest import Newest, newest

SEE_ALL = "dlq.view_deadletter"


def sees_all(user: Any) -> bool:
    return bool(user.has_perm(SEE_ALL))


def letters_for(user: Any) -> QuerySet[DeadLetter]:
    """Every dead letter with the permission; else those in the queues of settings in pools where the person
    may see them, and what of these was discarded. Whose a dead letter is says its queue, never the dead
    letter itself."""
    if sees_all(user):
        return DeadLetter.objects.all()
    mine = settings_for(user, SEE).order_by()
    queues = [dead_letter_queue(key) for key in mine.values_list("key", flat=True)]
    in_trash = Q(queue=dead_letter_queue(BIN), setting__in=mine.values("pk"))
    return DeadLetter.objects.filter(Q(queue__in=queues) | in_trash)


def queues_for(user: Any) -> tuple[str, ...] | None:
    """Names of the queues in which this person may see dead letters; None: every queue."""
    if sees_all(user):
        return None
    keys = settings_for(user, SEE).order_by().values_list("key", flat=True)
    return (*map(dead_letter_queue, keys), dead_letter_queue(BIN))


def sees_queue(user: Any, queue: str) -> bool:
    mine = queues_for(user)
    return mine is None or queue in mine


def dead_queues_for(user: Any) -> list[str]:
    """Names of the queues that ever held a dead letter and in which this person may see all of them. Without
    the trash: what lies there is another matter."""
    mine = queues_for(user)
    there = ranges.queues() if mine is None else mine
    return [queue for queue in there if queue != dead_letter_queue(BIN)]


def newest_found(filters: LetterFilter, user: Any, *, before: int | None = None, size: int) -> Newest:
    """A page of what a valid filter finds for this person, newest first: in bounded time, at any size."""
    asked, mine = filters.asked, queues_for(user)
    rows = DeadLetter.objects.all()
    if mine is not None:
        # By names of queues, which indexes have; of the trash, by what else is known of each dead letter.
        asked = replace(
            asked, queues=tuple(sorted({*mine} & {*(mine if asked.queues is None else asked.queues)}))
        )
        if dead_letter_queue(BIN) in (asked.queues or ()):
            rows = letters_for(user)
    return newest(rows, asked, before=before, size=size)


def found(
    query: QueryDict | str,
    user: Any,
    *,
    rows: QuerySet[DeadLetter] | None = None,
    queue: str = "",
    request: HttpRequest | None = None,
    at: datetime | None = None,
) -> tuple[LetterFilter, QuerySet[DeadLetter]]:
    """The filter and the dead letters it finds, unordered; nothing at all where the filter is not valid
    (`.problem` says why, in words). `rows` narrows it further, `queue` to one. `at`: when it was asked, None:
    now. Without a state it asks for what is dead."""
    data = (QueryDict(query) if isinstance(query, str) else query).copy()
    if not data.get("state"):
        data["state"] = "dead"
    seen = letters_for(user) if rows is None else rows & letters_for(user)
    filters = LetterFilter(data, seen, request=request, user=user, queue=queue, at=at)
    if not filters.is_valid():
        return filters, DeadLetter.objects.none()
    return filters, filters.qs
