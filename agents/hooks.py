"""Describes what this app asks of those above it. They implement it when they are ready.

Rows of this app are typed as `Any` here: models ask too (`key_taken`), and would be imported by what they
import.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.functional import Promise

from console.hooks import Hook

# How many rows that refer to something go in one transaction: others must not wait long for a lock of it.
AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Referrer:
    """Holds what is kept of a setting and of its runs in a table of any size: before these are removed, its
    rows are let go a few at a time. `of_setting` and `of_runs` (the keys of at most AT_ONCE) take a step, a
    transaction of its own of at most AT_ONCE rows, each time they are asked for the next one, and end where
    no row refers to these any more. A step answers how many rows it let go. `model` is what refers: nobody
    else touches its rows. `goes_with_the_row`: few of a setting, which are deleted with it, not before."""

    model: type[Any]
    of_setting: Callable[[Any], Iterator[int]]
    of_runs: Callable[[Collection[int]], Iterator[int]]
    goes_with_the_row: bool = False


referrers: Hook[[], Referrer] = Hook()
# {setting key: {message key: number of attempts known to have been made}} of these settings, without what
# nothing is known of. Asked with every heartbeat, once for all.
known_attempts: Hook[[Collection[Any]], Mapping[str, Mapping[str, int]]] = Hook()
# Of an activation, under its lock: messages that failed in it and were not handled well later in it.
unresolved_messages: Hook[[Any], int] = Hook()
# (server, spool, the highest number that its KMA was told is stored, now): what is stored where that is less.
stored_less: Hook[[Any, UUID, int, datetime], int | None] = Hook()
# Why a new setting cannot have this key: the queue of that name is somebody else's. Rows only, never the
# broker.
key_taken: Hook[[str], str | Promise | None] = Hook()
# Why a setting cannot be removed now: something is about to put messages into its subscription. Asked under
# the lock of its row; rows only, never the broker.
removal_refused: Hook[[Any], str | Promise | None] = Hook()
# After the commit of each end of an activation. It may be lost to a kill in between: what must follow is
# healed by `agents.tend`.
activation_ended: Hook[[Any, datetime], None] = Hook()
# In the transaction of a trip, also of one that is opened again: what was done because of it, for its
# effects.
breaker_tripped: Hook[[Any, datetime], Sequence[dict[str, str]]] = Hook()
# In the transaction that ends a trip: the trip, and when.
trip_ended: Hook[[Any, datetime], None] = Hook()
# In the transaction that enables or disables a setting: the setting, whether it is enabled now, the reason,
# the name of who did it (empty: the MA itself), when.
setting_switched: Hook[[Any, bool, Any, str, datetime], None] = Hook()
# (the context of the serializer, a trip): who was told of it, as REST says it.
trip_notices: Hook[[Mapping[str, Any], Any], Sequence[Any]] = Hook()
# With each heartbeat, and by the process that follows the dead letters: while Redis, beat or the worker is
# away whoever is asked does in their place what is his. It must not keep the caller waiting.
stand_in: Hook[[datetime], object] = Hook()
# (request, trips): who works on which of them: {number of a trip: a name}, of those that this person may know
# of.
trip_takers: Hook[[Any, Sequence[Any]], Mapping[int, str]] = Hook()
