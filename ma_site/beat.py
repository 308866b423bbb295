"""Beat, on one host of several: only the holder of the lease sends."""

import copy
from datetime import timedelta
from typing import Any

from celery.beat import ScheduleEntry, Scheduler
from django.db import close_old_connections
from django.utils import timezone

from console.leases.holder import BEAT, Holder
from console.leases.rules import ASK_SECONDS
from exposition import notify


class LeasedScheduler(Scheduler):
    """A task is asked for by whoever may act when it is sent, not when it became due: a beat that was held up
    between the two, by Redis or by a stopped process, sends nothing.

    Renewed between two tasks, in the same thread: a beat that hangs loses the lease."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._lease = Holder(BEAT)
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        close_old_connections()
        if not self._lease.tend():
            notify.fed()  # one that waits sends nothing, and is well
            return ASK_SECONDS
        pause = super().tick(*args, **kwargs)
        return min(pause, ASK_SECONDS)

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """A task expires so long after this question, not after it was sent: what a beat sends that was
        stopped in between is void."""
        asked_at = timezone.now()
        if not self._lease.may_act():
            return
        fenced, options = copy.copy(entry), entry.options or {}
        fenced.options = {**options, "expires": asked_at + timedelta(seconds=options["expires"])}
        super().apply_entry(fenced, producer=producer)

    def apply_async(self, entry: ScheduleEntry, *args: Any, **kwargs: Any) -> Any:
        sent = super().apply_async(entry, *args, **kwargs)
        self._lease.worked()
        return sent

    def close(self) -> None:
        super().close()
        self._lease.leave()
