"""Letters too large for the index, fetched whole from the real broker."""

from pathlib import Path

import pytest
from django.utils import timezone

from broker.amqp.codec import decode
from broker.port import Message, Settle
from console.jobs.engine import run
from console.operations.operation import perform
from contract.typed import Typed
from dlq.dead_letters.rules.parser import WHOLE_BODY
from dlq.full_body import worker as full_body_worker
from dlq.full_body.operations import KEPT, CancelFetch, FetchBody
from dlq.full_body.worker import BodyFetchWorker
from dlq.models import DeadLetter, FetchState, WholeFetch
from dlq.reasons import NOT_THERE, TRIED
from tests.dlq.processes import Processes
from tests.dlq.stage import Stage
from tests.web import reports

pytestmark = pytest.mark.django_db
LARGE = "ж" * WHOLE_BODY


def large_letter(stage: Stage) -> DeadLetter:
    """Behind others in its queue."""
    key = stage.key()
    reports.setting(key)
    for body in ("a", "b", LARGE):
        stage.publish(f"t.{key}", Message(body=Typed("string", body)))
    stage.consume(key, 3, Settle.REJECT)
    stage.follow(lambda: DeadLetter.objects.filter(setting_key=key).count() == 3)
    return DeadLetter.objects.get(setting_key=key, truncated=True)


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker counts."""
    monkeypatch.setattr("dlq.full_body.operations.message_count", lambda _queue: 3)


def fetch_of(letter: DeadLetter) -> WholeFetch:
    fetch: WholeFetch = perform(FetchBody, letter, None).made
    return fetch


def test_the_whole_of_a_letter_is_fetched_from_its_queue(stage: Stage) -> None:
    letter = large_letter(stage)
    fetch = fetch_of(letter)
    run(BodyFetchWorker(lambda: stage.queues), fetch.pk, timezone.now())
    fetch.refresh_from_db()
    assert (fetch.state, fetch.tries, fetch.lease_until) == (FetchState.DONE, 1, None)
    assert fetch.encoded is not None and decode(bytes(fetch.encoded)).body == Typed("string", LARGE)
    assert stage.count(letter.queue) == 3


def test_what_has_left_its_queue_is_said_to_be_gone(stage: Stage) -> None:
    letter = large_letter(stage)
    fetch = fetch_of(letter)
    stage.management.call(f"queue.{letter.queue}", "removeAllMessages")
    run(BodyFetchWorker(lambda: stage.queues), fetch.pk, timezone.now())
    fetch.refresh_from_db()
    assert (fetch.state, fetch.problem) == (FetchState.FAILED, NOT_THERE())


def test_a_cancelled_fetch_stores_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    letter = large_letter(stage)
    fetch = fetch_of(letter)
    found = full_body_worker._search

    def cancelled_meanwhile(*arguments):  # type: ignore[no-untyped-def]
        perform(CancelFetch, letter, None)
        return found(*arguments)

    monkeypatch.setattr(full_body_worker, "_search", cancelled_meanwhile)
    run(BodyFetchWorker(lambda: stage.queues), fetch.pk, timezone.now())
    fetch.refresh_from_db()
    assert (fetch.state, fetch.encoded) == (FetchState.CANCELLED, None)


RUN = """
from ma_site.tasks import run_job
from dlq.models import WholeFetch
WholeFetch.objects.update(lease_until=None)
run_job("dlq.wholefetch", str(WholeFetch.objects.get().pk))
"""
ASKED = """
from console.operations.operation import perform
from dlq.models import DeadLetter
from dlq.index.walk import index_queue
from dlq.full_body.operations import FetchBody
index_queue('DLQ.{0}')
perform(FetchBody, DeadLetter.objects.get(truncated=True), None)
"""
TOLD = """
from dlq.models import WholeFetch
one = WholeFetch.objects.get()
print(one.state, one.tries, len(one.encoded or b'') > 2_000_000)
"""


@pytest.mark.kill
def test_a_killed_fetch_is_begun_anew(stage: Stage, tmp_path: Path) -> None:
    processes = Processes(tmp_path, stage)
    key = stage.key()
    stage.publish(f"t.{key}", Message(body=Typed("string", LARGE)))
    stage.consume(key, 1, Settle.REJECT)
    processes.python(ASKED.format(key))
    processes.crashes("whole: read, not stored", "shell", "-c", RUN)
    assert processes.python(TOLD).splitlines()[-1] == "running 1 False"
    processes.python(RUN)
    assert processes.python(TOLD).splitlines()[-1] == "done 2 True"


def test_what_is_old_is_dropped_and_what_broke_off_three_times_is_given_up(stage: Stage) -> None:
    letter = large_letter(stage)
    fetch = fetch_of(letter)
    worker, now = BodyFetchWorker(lambda: stage.queues), timezone.now()
    assert list(worker.free(now)) == [fetch]
    WholeFetch.objects.update(tries=full_body_worker.TRIES, lease_until=now)
    run(worker, fetch.pk, timezone.now())
    fetch.refresh_from_db()
    assert (fetch.state, fetch.problem) == (FetchState.FAILED, TRIED())
    WholeFetch.objects.update(state=FetchState.DONE, encoded=b"x", ended_at=now - KEPT * 2)
    worker.tidy(now)
    fetch.refresh_from_db()
    assert (fetch.state, fetch.encoded) == (FetchState.DROPPED, None)
