"""Describes what a worker does step by step, and who works on it: a lease that runs out when its worker
dies."""

from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from console.reasons import NO_REASON, Reason, ReasonField

# Why nobody works on it for some seconds: something went wrong (`problem`), and is tried again.
RETRY = "retry"
# Columns of a job that nobody works on, and that waits for nothing.
NOBODY: dict[str, Any] = {"holder": None, "lease_until": None, "wait_reason": ""}


class Job(models.Model):
    """`holder` works on it, until `lease_until` at most. A lease without a holder is a pause, during which
    nobody does anything: `wait_reason` says why, in a stable word. `problem` is what went wrong: with RETRY
    the next try forgets it, else it stays.

    The lease saves work, it is not what keeps messages safe: every step may run twice, and at the same time
    elsewhere. A job as its worker has loaded it is the worker's hold on it."""

    # A worker may be silent so long before another one takes the job over.
    lease: ClassVar[timedelta] = timedelta(seconds=30)

    state = models.CharField(max_length=10)
    holder = models.UUIDField(null=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    wait_reason = models.TextField(_("waiting for"), blank=True)
    problem = ReasonField(_("problem"))

    objects: ClassVar[models.Manager[Self]] = models.Manager()

    class Meta:
        abstract = True

    def renew(self, now: datetime, **columns: Any) -> bool:
        """Holds on to it for another lease, if it is still ours and still in the state that we saw: false
        when a person paused or cancelled it, or another worker has it. Inside a transaction it fences what is
        done there."""
        until = now + self.lease
        if not self._mine().filter(state=self.state).update(lease_until=until, **columns):
            return False
        self.lease_until = until
        return True

    def release(
        self, *, until: datetime | None = None, wait_reason: str = "", problem: Reason = NO_REASON
    ) -> None:
        """Lets others take it, at once or when a pause is over, if it is still ours. `problem` is forgotten
        by the next try; one that is there already stays instead, for it is why the job ends."""
        columns: dict[str, Any] = {"holder": None, "lease_until": until, "wait_reason": wait_reason}
        mine = self._mine()
        if problem and not mine.values_list("problem", flat=True).first():
            columns |= {"wait_reason": RETRY, "problem": problem}
        mine.update(**columns)

    def end(self, **columns: Any) -> bool:
        """Returns whether it was still ours, and in the state that we saw."""
        return bool(self._mine().filter(state=self.state).update(**NOBODY, **columns))

    def _mine(self) -> models.QuerySet[Self]:
        return type(self).objects.filter(pk=self.pk, holder=self.holder, holder__isnull=False)
