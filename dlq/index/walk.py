"""Walking over a dead-letter queue: the index is brought to what lies there.

A walk reads the queue from its head over AMQP without taking anything. Of each dead letter only its id is
read; one whose id the index does not know is read whole and stored. What the index knows of the queue, is
older than the walk and was not seen is gone, once the walk was whole.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from broker.amqp.browser import AmqpBrowser
from broker.management.queues import find
from broker.management.waiting_messages import in_delivery
from broker.port import AddressUnknown, BrokerUnavailable, Browser, Management, ManagementFailed
from console.broker import management
from console.jobs import crash
from contract.names import DEAD_LETTER_PREFIX, ORIG_MESSAGE_ID
from dlq.dead_letters.queries.ranges import letters_numbered
from dlq.dead_letters.rules.parser import letter_row
from dlq.index import store
from dlq.index.queries import UNKNOWN_QUEUE
from dlq.index.store import uncollected
from dlq.index.walk_ids import DeadLetterIdentifier, IndexedRow, Numbers, Seen
from dlq.models import DeadLetter, ItemState, LetterContent, LetterState, ReplayItem
from dlq.models.dead_letter import BIN_QUEUE
from dlq.search import rebuild

# Rows that are compared with what was seen at a time.
PAGE = 2000
# Key, broker node and id of a row.
Row = tuple[int, str, int]


class WalkIncomplete(BrokerUnavailable):
    """A walk saw fewer dead letters than the broker counts: what it did not see may be there. Temporary: walk
    again."""

    def __init__(self, reason: str, seen: int = 0, counted: int = 0) -> None:
        super().__init__(reason)
        self.seen, self.counted = seen, counted


@dataclass(frozen=True, slots=True)
class Walked:
    """Holds what a whole walk did: dead letters seen, rows added, rows that are there again, rows that are
    gone."""

    seen: int
    added: int
    returned: int
    gone: int


class Walk:
    """One walk; `step` until it is False. Every step may be the last one of this process: what it stored
    stays true, and nothing is marked gone before the end. Close it where it is left early."""

    def __init__(self, queue: str, address: str, asked: Management, browser: Browser, now: datetime) -> None:
        self.queue = queue
        self._management = asked
        self._began_at = now
        self._node_id = str(asked.attribute("broker", "NodeID"))
        self._before = message_count(asked, queue)
        self._foreign = address != settings.MA_DLA_ADDRESS
        self._identifier = identifier_of(queue, address, self._node_id, self._row)
        self._pieces: Iterator[list[bytes]] = browser.walk(address, queue)
        self._numbers = Numbers()
        self._finishing: Iterator[Sequence[Row]] | None = None
        self._seen = self._added = self._returned = self._gone = 0

    @property
    def seen(self) -> int:
        return self._seen

    @property
    def done(self) -> Walked:
        return Walked(self._seen, self._added, self._returned, self._gone)

    def step(self, now: datetime) -> bool:
        """Reads some hundred dead letters or compares some thousand rows; whether there is more to do. Raises
        WalkIncomplete, BrokerError."""
        if self._finishing is not None:
            return self._compare(self._finishing, now)
        piece = next(self._pieces, None)
        if piece is None:
            self._check_whole()
            self._finishing = older_rows(self.queue, self._began_at)
        else:
            self._take(piece, now)
            crash.point("walk: stored a piece")
        return True

    def close(self) -> None:
        self._pieces.close()  # type: ignore[attr-defined]  # a generator

    @uncollected
    def _take(self, piece: Sequence[bytes], now: datetime) -> None:
        self._seen += len(piece)
        letters, known = self._identifier.of(piece)
        self._numbers.add(letters)
        unknown = [
            self._unknown(number, seen, now) for number, seen in letters.items() if number not in known
        ]
        self._added += len(store.store_safely(unknown, now))
        # One that is dead without its body: whoever deleted that saw it gone a moment before.
        there = [
            number for number, found in known.items() if found.state == LetterState.GONE or found.body_deleted
        ]
        if there:
            self._return({number: letters[number] for number in there}, now)

    @transaction.atomic
    def _return(self, letters: dict[int, Seen], now: datetime) -> None:
        """They lie here: those that were thought gone are dead again, each with its body. Rows are locked
        before it is looked which have none: retention has deleted it by then, or sees that they are dead."""
        rows = letters_numbered(self._node_id, self.queue, letters).filter(
            state__in=(LetterState.GONE, LetterState.DEAD)
        )
        locked = list(rows.order_by("pk").select_for_update().values_list("pk", "orig_message_id"))
        numbers = [pk for pk, _number in locked]
        gone = DeadLetter.objects.filter(pk__in=numbers, state=LetterState.GONE)
        self._returned += gone.update(state=LetterState.DEAD, state_at=now)
        bodyless = DeadLetter.objects.filter(pk__in=numbers, body_deleted_at__isnull=False).exclude(
            problem="erased"
        )
        if found := list(bodyless.select_related("content")):
            by_pk = dict(locked)
            bring_back(found, {row.pk: self._read(letters[by_pk[row.pk]]) for row in found})

    def _read(self, seen: Seen) -> DeadLetter:
        return seen.row or self._row(seen.encoded)

    def _unknown(self, number: int, seen: Seen, now: datetime) -> DeadLetter:
        row = self._read(seen)
        row.orig_message_id, row.seen_at, row.state_at = number, now, now
        return row

    def _row(self, encoded: bytes) -> DeadLetter:
        row = letter_row(encoded, self._node_id, self._began_at)
        row.queue = self.queue
        row.setting_key = row.orig_queue if self._foreign else key_in(self.queue, row.orig_queue)
        return row

    def _check_whole(self) -> None:
        counted = min(self._before, message_count(self._management, self.queue))
        if self._seen < counted:
            raise WalkIncomplete(f"the scan of {self.queue} read {self._seen} of {counted} messages")
        # Not seen, and there: dead letters that came meanwhile made up for them in the count.
        self._numbers.add(list(numbers_in_delivery(self._management, self.queue)))

    def _compare(self, pages: Iterator[Sequence[Row]], now: datetime) -> bool:
        """Marks what is gone, page by page: killed in between, the next walk marks the rest."""
        page = next(pages, None)
        if page is None:
            return False
        missing = [
            pk for pk, node_id, number in page if node_id != self._node_id or number not in self._numbers
        ]
        self._gone += mark_gone(missing, now)
        crash.point("walk: marked a page")
        return True


def numbers_in_delivery(asked: Management, queue: str) -> frozenset[int]:
    """The ids of dead letters that consumers hold unsettled; none where these are too many to be listed.
    Raises BrokerError."""
    if not int(asked.attribute(f"queue.{queue}", "DeliveringCount")):
        return frozenset()
    found = (row.get(ORIG_MESSAGE_ID) for each in in_delivery(asked, queue) or () for row in each.rows)
    return frozenset(int(number) for number in found if number is not None)


def identifier_of(
    queue: str, address: str, node_id: str, read: Callable[[bytes], DeadLetter]
) -> DeadLetterIdentifier:
    """Returns what tells the dead letters of one walk over this queue apart, by the numbers that the index
    has."""

    def known(numbers: Iterable[int]) -> dict[int, IndexedRow]:
        columns = "orig_message_id", "state", "orig_queue", "body_deleted_at"
        rows = letters_numbered(node_id, queue, numbers).values_list(*columns)
        return {
            number: IndexedRow(
                state, origin, deleted is not None and state in (LetterState.DEAD, LetterState.GONE)
            )
            for number, state, origin, deleted in rows
        }

    mixed = address != settings.MA_DLA_ADDRESS or queue in (BIN_QUEUE, UNKNOWN_QUEUE)
    return DeadLetterIdentifier(mixed=mixed, read=read, known=known)


class Gone:
    """Takes the place of a walk where the queue is no longer there: none of its dead letters is."""

    def __init__(self, queue: str, now: datetime) -> None:
        self.queue = queue
        self.seen = self._gone = 0
        self._pages = older_rows(queue, now)

    @property
    def done(self) -> Walked:
        return Walked(0, 0, 0, self._gone)

    def step(self, now: datetime) -> bool:
        page = next(self._pages, None)
        self._gone += mark_gone([pk for pk, _, _ in page or ()], now)
        return page is not None

    def close(self) -> None:
        """Nothing is open."""


def older_rows(queue: str, than: datetime) -> Iterator[Sequence[Row]]:
    """The dead letters that the index knew of a queue before that moment, in pages."""
    dead = DeadLetter.objects.filter(queue=queue, state=LetterState.DEAD, seen_at__lt=than).order_by("pk")
    last = 0
    while page := list(dead.filter(pk__gt=last).values_list("pk", "node_id", "orig_message_id")[:PAGE]):
        yield page
        last = page[-1][0]


def mark_gone(letters: Sequence[int], now: datetime) -> int:
    """Those that are dead and that no replay is about to move: of these the replay says what became of
    them."""
    if not letters:
        return 0
    planned = ReplayItem.objects.filter(letter=OuterRef("pk"), state=ItemState.PLANNED)
    dead = DeadLetter.objects.filter(~Exists(planned), pk__in=letters, state=LetterState.DEAD)
    return dead.update(state=LetterState.GONE, state_at=now)


def key_in(queue: str, orig_queue: str) -> str:
    """The key of the setting whose dead letter it is, by where it lies. In the trash, in a foreign queue and
    among the dead letters of nobody: by where it was before, which after a move is a dead-letter queue."""
    if queue.startswith(DEAD_LETTER_PREFIX) and queue not in (BIN_QUEUE, UNKNOWN_QUEUE):
        return queue.removeprefix(DEAD_LETTER_PREFIX)
    return orig_queue.removeprefix(DEAD_LETTER_PREFIX)


def message_count(asked: Management, queue: str) -> int:
    """The broker's exact count. Raises AddressUnknown: there is no such queue."""
    return queue_numbers(asked, queue, "MessageCount")[0]


def queue_numbers(asked: Management, queue: str, *names: str) -> list[int]:
    """Attributes of a queue that are numbers. Raises AddressUnknown: there is no such queue."""
    try:
        return [int(value) for value in asked.attributes(f"queue.{queue}", *names)]
    except ManagementFailed as error:
        if find(asked, "listQueues", queue) is None:
            raise AddressUnknown(f"the broker has no queue {queue}") from error
        raise


def checked_walk(queue: str, address: str, asked: Management, browser: Browser) -> Iterator[list[bytes]]:
    """The messages of the queue, in pieces. Raises WalkIncomplete at the end, BrokerError."""
    before, seen = message_count(asked, queue), 0
    for piece in browser.walk(address, queue):
        seen += len(piece)
        yield piece
    counted = min(before, message_count(asked, queue))
    if seen < counted:
        raise WalkIncomplete(f"the scan of {queue} read {seen} of {counted} messages", seen, counted)


def index_queue(queue: str, address: str = "") -> Walked:
    """Brings the index to what lies in the queue, however long that takes. Raises WalkIncomplete,
    BrokerError."""
    browser = AmqpBrowser(settings.MA_BROKER_AMQP)
    one = Walk(queue, address or settings.MA_DLA_ADDRESS, management(), browser, timezone.now())
    try:
        while one.step(timezone.now()):
            pass
    finally:
        one.close()
    return one.done


def bring_back(letters: Sequence[DeadLetter], fresh: Mapping[int, DeadLetter]) -> None:
    """Bodies of dead letters that lie in their queue all the same; `letters` are locked and with their
    content, `fresh` are their rows as they were just read, by their keys. In the transaction that says that
    they are dead."""
    rebuild.forget_words(letters)
    for letter in letters:
        read = fresh[letter.pk]
        content = {"encoded": read.encoded, "body_text": read.body_text}
        LetterContent.objects.filter(pk=letter.pk).update(**content)
        DeadLetter.objects.filter(pk=letter.pk).update(body_deleted_at=None)
        letter.encoded, letter.body_text, letter.body_deleted_at = read.encoded, read.body_text, None
    rebuild.put_words(letters)
