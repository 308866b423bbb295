"""Sweeping until something is so."""

from collections.abc import Callable

from django.utils import timezone

from dlq.index.queries import FEED_QUEUE
from dlq.index.sweep import Sweep
from dlq.models import LetterQueue
from tests.dlq.stage import DLA, Stage


def sweep_until(stage: Stage, done: Callable[[], bool]) -> None:
    """With no walk left open. The queues of other tests on the same broker are walked as well; the feed has
    to be empty."""
    one = Sweep(stage.management, stage.queues.browser, DLA)
    for _ in range(2000):
        one.step(timezone.now(), idle=True)
        if not LetterQueue.objects.exclude(walk_started_at=None).exists() and done():
            return
    feed = stage.management.attribute(f"queue.{FEED_QUEUE}", "MessageCount")
    raise AssertionError(f"never so; in the feed {feed}: {list(LetterQueue.objects.values())}")
