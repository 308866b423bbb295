"""The index of dead letters: from the feed, beside a bare AMQP consumer of such letters; and rebuilt from the
queue, beside a bare Proton browser."""

import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench import Bound, Line, Measure
from bench.dlq import DLA, Here
from bench.dlq_letters import count, make_letters
from contract.names import FEED, dead_letter_queue

# Letters a second that the feed must reach, and the share of a bare browser's rate that a rebuild must.
FEED_GOALS = {"sqlite": 2_000.0, "postgresql": 3_000.0}
REBUILD_GOAL = 0.6
CREDIT = 400
PATIENCE = 600.0
# An index that was never filled; PostgreSQL keeps what is deleted in its way until it is vacuumed.
EMPTIED = {
    "sqlite": ("DELETE FROM dlq_lettercontent", "DELETE FROM dlq_deadletter"),
    "postgresql": ("TRUNCATE dlq_deadletter, dlq_lettercontent, dlq_words CASCADE",),
}


def measure(here: Here) -> Sequence[Line]:
    from agents.models import Destination, LaunchSetting, Pool
    from console.broker import management

    key = f"bench-index-{here.database}"
    broker, feed_queue = management(), dead_letter_queue(FEED)
    make_letters(here.place, broker, key, here.letters)
    # Such letters once more for the reference, in a setting of their own.
    other = f"{key}-bare"
    destination, pool = Destination.objects.create(name=f"bench.{key}"), Pool.objects.create(name="bench")
    LaunchSetting.objects.create(key=key, agent="bench.noop", destination=destination, pool=pool)
    feed_rate = _feed(here, count(broker, feed_queue))
    make_letters(here.place, broker, other, here.letters)
    bare_rate = _bare(here, feed_queue, here.letters, browse=False)
    bare_browse = _bare(here, dead_letter_queue(key), here.letters, browse=True)
    memory = _memory()
    rebuild_rate = _rebuild(key, here.letters)
    return [
        Bound(
            name=f"{here.database} · index from the feed",
            product=feed_rate,
            reference=bare_rate,
            goal=FEED_GOALS[here.database],
            unit="/s",
            peak_memory_mb=memory,
        ),
        Measure(
            name=f"{here.database} · rebuild",
            product=rebuild_rate,
            reference=bare_browse,
            goal=REBUILD_GOAL,
            unit="/s",
            peak_memory_mb=_memory(),
        ),
    ]


def _feed(here: Here, letters: int) -> float:
    """As `manage.py follow_dead_letters` does it, from the first letter stored to the last one accepted."""
    from broker.amqp.consumer import AmqpConsumer
    from broker.amqp.publisher import AmqpPublisher
    from console.broker import management
    from dlq.index.feed import Feed, Inbox
    from dlq.models import DeadLetter

    inbox = Inbox()
    consumer = AmqpConsumer(here.place.amqp, DLA, dead_letter_queue(FEED), inbox, core=True)
    feed = Feed(consumer, inbox, management(), AmqpPublisher(here.place.amqp), DLA)
    began = time.monotonic()
    feed.start()
    try:
        _until(lambda: not feed.step(0.5) and count(management(), dead_letter_queue(FEED)) == 0)
        ended = time.monotonic() - 0.5  # the last step waited for a letter that did not come
    finally:
        feed.stop()
    stored = DeadLetter.objects.count()
    if stored < letters:
        raise RuntimeError(f"{stored} of {letters} letters were stored")
    return letters / (ended - began)


def _rebuild(key: str, letters: int) -> float:
    """From an empty index."""
    from django.db import connection

    from dlq.models import DeadLetter

    with connection.cursor() as cursor:
        for statement in EMPTIED[connection.vendor]:
            cursor.execute(statement)
    began = time.monotonic()
    _walk(dead_letter_queue(key))
    seconds = time.monotonic() - began
    found = DeadLetter.objects.filter(queue=dead_letter_queue(key)).count()
    if found != letters:
        raise RuntimeError(f"a rebuild found {found} of {letters} letters")
    return letters / seconds


def _walk(queue: str) -> None:
    from dlq.index.walk import index_queue

    index_queue(queue, DLA)


def _bare(here: Here, queue: str, letters: int, browse: bool) -> float:
    """What python-qpid-proton's own documentation shows: a container, a handler, credit, automatic
    acceptance."""
    from proton import Terminus
    from proton.handlers import MessagingHandler
    from proton.reactor import Container, LinkOption

    class Copies(LinkOption):
        def apply(self, link: Any) -> None:
            link.source.distribution_mode = Terminus.DIST_MODE_COPY

    class Receiver(MessagingHandler):
        def __init__(self) -> None:
            super().__init__(prefetch=CREDIT, auto_accept=not browse)
            self.left = letters
            self.began = self.ended = 0.0

        def on_start(self, event: Any) -> None:
            self.connection = event.container.connect(
                here.place.amqp_url, user=here.place.user, password=here.place.password, allowed_mechs="PLAIN"
            )
            options = Copies() if browse else None
            event.container.create_receiver(self.connection, f"{DLA}::{queue}", options=options)

        def on_link_opened(self, event: Any) -> None:
            self.began = time.monotonic()

        def on_message(self, event: Any) -> None:
            _ = event.message.body
            self.left -= 1
            if not self.left:
                self.ended = time.monotonic()
                self.connection.close()

    receiver = Receiver()
    Container(receiver).run()
    return letters / (receiver.ended - receiver.began)


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise RuntimeError("the bench's feed does not get on")


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
