"""Pages of what a filter of dead letters finds: the same as looking at each of them, at any size."""

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest
from django.contrib.auth.models import User

from broker.amqp.codec import encode
from broker.port import Message
from contract.typed import Typed
from dlq.dead_letters.rules.parser import letter_row
from dlq.index import store
from dlq.models import DeadLetter, LetterState
from dlq.search import newest as search
from dlq.search.conditions import Query
from dlq.search.newest import Newest, newest
from dlq.search.visibility import found
from tests.web.reports import AT

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
DEAD, GIVEN_BACK = LetterState.DEAD.value, LetterState.GIVEN_BACK.value
SIZE = 7
Row = DeadLetter


def stored(many: int = 150, first: int = 0) -> list[Row]:
    """In two queues and two states, with words of three bodies; newest first."""
    random, rows = Random(first), []
    for number in range(first, first + many):
        text = random.choice(("order 7 failed", "order 8", "a mail of Ж"))
        annotations = {"x-opt-ORIG-MESSAGE-ID": Typed("long", number)}
        encoded = encode(Message(body=Typed("string", text), annotations=annotations))
        row = letter_row(encoded, "node-1", AT + timedelta(seconds=number))
        row.queue = random.choice(("DLQ.orders", "DLQ.mails"))
        rows.append(row)
    store.store(rows, AT)
    for row in rows:
        row.exception_type = random.choice(("KeyError", "ValueError", ""))
        row.fingerprint = f"v1:{row.exception_type[:1]}"
        row.server_name = random.choice(("srv-1", "srv-2"))
        row.delivery_count, row.chapter = random.randrange(1, 6), random.choice((1, 1, 2))
        row.state = random.choice((DEAD, DEAD, DEAD, GIVEN_BACK))
    columns = ["exception_type", "fingerprint", "server_name", "delivery_count", "chapter", "state"]
    Row.objects.bulk_update(rows, columns)
    return list(Row.objects.order_by("-pk"))


def has(row: Row, word: str) -> bool:
    return word.encode() in bytes(row.encoded)


def is_dead(row: Row) -> bool:
    return row.state == DEAD


QUERIES: dict[str, Callable[[Row], bool]] = {
    "": is_dead,
    "state=every": lambda row: True,
    "state=given_back": lambda row: row.state == GIVEN_BACK,
    "queue=DLQ.orders": lambda row: is_dead(row) and row.queue == "DLQ.orders",
    "queue=DLQ.orders&state=every&server=srv-1": lambda row: (
        (row.queue, row.server_name) == ("DLQ.orders", "srv-1")
    ),
    "fingerprint=v1:K": lambda row: is_dead(row) and row.fingerprint == "v1:K",
    "fingerprint=v1:K&queue=DLQ.mails": lambda row: (
        is_dead(row) and (row.fingerprint, row.queue) == ("v1:K", "DLQ.mails")
    ),
    "fingerprint=v1:nothing": lambda row: False,
    "exception=error&delivered_from=2&delivered_to=3": lambda row: (
        is_dead(row) and "Error" in row.exception_type and 2 <= row.delivery_count <= 3
    ),
    "without=exception_type": lambda row: is_dead(row) and row.exception_type == "",
    "replays_from=1": lambda row: is_dead(row) and row.chapter == 2,
    "replays_from=1&state=every": lambda row: row.times_replayed > 0,
    "replays_to=0&state=every": lambda row: row.times_replayed == 0,
    "replays_to=0&server=srv-2": lambda row: is_dead(row) and (row.chapter, row.server_name) == (1, "srv-2"),
    "since=2026-03-01T12:00:20Z&until=2026-03-01T12:01:40Z": lambda row: (
        is_dead(row) and AT + timedelta(seconds=20) <= row.seen_at < AT + timedelta(seconds=100)
    ),
    "text=order": lambda row: is_dead(row) and has(row, "order"),
    "text=order&state=every&queue=DLQ.mails": lambda row: has(row, "order") and row.queue == "DLQ.mails",
    "text=order+failed&server=srv-1": lambda row: (
        is_dead(row) and has(row, "failed") and row.server_name == "srv-1"
    ),
    "text=nothing": lambda row: False,
}


@pytest.fixture(params=["few", "many", "many, without time"])
def pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(search, "WINDOW", 4)
    monkeypatch.setattr(search, "WIDEST", 16)
    monkeypatch.setattr(search, "BATCH", 5)
    monkeypatch.setattr(search, "BUDGET", -1.0 if request.param == "many, without time" else 60.0)
    if request.param != "few":
        monkeypatch.setattr(search, "FEW", 3)
    return str(request.param)


def asked_for(query: str) -> Query:
    filters, _rows = found(query, User(is_superuser=True, is_active=True))
    assert not filters.problem, filters.problem
    return filters.asked


def pages(asked: Query) -> list[Newest]:
    """All of them, downwards."""
    some: list[Newest] = []
    before: int | None = None
    while True:
        some.append(newest(Row.objects.all(), asked, before=before, size=SIZE))
        after = some[-1].places[-1] if len(some[-1].places) == SIZE else some[-1].stopped_at
        if after is None:
            return some
        assert before is None or after < before, "it goes on"
        before = after


def test_every_page_together_is_what_matches(pace: str) -> None:
    rows = stored()
    for query, matches in QUERIES.items():
        expected = [row.pk for row in rows if matches(row)]

        some = pages(asked_for(query))

        assert [number for page in some for number in page.places] == expected, query
        if pace != "many, without time":
            assert all(len(page.places) == SIZE for page in some[:-1]), query


def test_the_newest_page_is_counted_or_says_that_there_are_more(pace: str) -> None:
    rows = stored()
    for query, matches in QUERIES.items():
        expected = [row.pk for row in rows if matches(row)]

        page = newest(Row.objects.all(), asked_for(query), before=None, size=SIZE)

        assert page.count <= len(expected) and (page.more or page.count == len(expected)), query
        if pace == "few":
            assert not page.more and page.stopped_at is None, query
        if page.stopped_at is not None:
            assert page.more and page.places == [
                number for number in expected if number >= page.stopped_at
            ], query


def test_no_page_holds_a_letter_twice_where_letters_come_meanwhile(pace: str) -> None:
    stored()
    first = pages(asked_for("text=order"))
    stored(20, first=150)
    for page, after in pairwise(first):
        below = page.places[-1] if len(page.places) == SIZE else page.stopped_at
        assert (
            newest(Row.objects.all(), asked_for("text=order"), before=below, size=SIZE).places == after.places
        )
