"""Feed and worker listen for scrapes of what they count themselves, where an address says so."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from celery import signals

from broker.port import Delivery, Settle
from console.hooks import process_begins
from dlq.index import feed
from exposition.declared import Tallies
from exposition.listener import Address, Listener
from ma_site.scrape import processes

pytestmark = pytest.mark.process


@pytest.fixture
def listeners(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Listener]]:
    """Those that a test began; they end with it."""
    found: list[Listener] = []
    serve = processes.serve

    def keep(*arguments: Any) -> Listener | None:
        listener = serve(*arguments)
        found.extend([listener] if listener else [])
        return listener

    monkeypatch.setattr(processes, "serve", keep)
    yield found
    for listener in found:
        listener.stop()
    signals.task_prerun.disconnect(processes.begin)
    signals.task_postrun.disconnect(processes.end)


def two_ports() -> Address:
    """Two free ports side by side."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                other.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return Address("127.0.0.1", port)


def scrape(address: Address) -> str:
    answer = requests.get(f"http://{address.host}:{address.port}/metrics", timeout=10)
    assert answer.status_code == 200
    return answer.text


def test_without_an_address_nothing_listens(listeners: list[Listener]) -> None:
    process_begins("feed")
    process_begins("worker")
    assert listeners == []


def test_the_feed_listens_there_and_the_worker_at_the_next_port(
    listeners: list[Listener], settings: Any
) -> None:
    settings.MA_METRICS_ADDRESS = address = two_ports()
    process_begins("feed")
    process_begins("worker")
    assert "process_cpu_seconds_total" in scrape(address)
    assert "process_resident_memory_bytes" in scrape(address.moved(1))


def test_the_worker_counts_its_tasks_by_how_they_ended(listeners: list[Listener], settings: Any) -> None:
    from ma_site.tasks import fold_task

    settings.MA_METRICS_ADDRESS = address = two_ports()
    process_begins("worker")
    signals.task_prerun.send(fold_task, task=fold_task)
    signals.task_postrun.send(fold_task, task=fold_task, state="SUCCESS")
    found = scrape(address.moved(1))
    assert 'ma_tasks_total{result="success",task="failures.fold"} 1.0' in found
    assert 'ma_task_seconds_count{task="failures.fold"} 1.0' in found


def test_a_port_that_is_taken_is_no_reason_to_stop(listeners: list[Listener], settings: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings.MA_METRICS_ADDRESS = Address("127.0.0.1", taken.getsockname()[1])
        process_begins("feed")
    assert listeners == []


class Silent:
    """A consumer that takes what it is told."""

    def __init__(self) -> None:
        self.settled: list[tuple[int, Settle]] = []

    def settle(self, settlements: list[tuple[int, Settle]]) -> None:
        self.settled += settlements


def test_the_feed_counts_what_it_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = feed.Inbox()
    consumer: Any = Silent()
    nobody: Any = None
    one = feed.Feed(consumer, inbox, nobody, nobody, "MA.DLA")
    monkeypatch.setattr(one, "_give_heartbeat", lambda: None)
    monkeypatch.setattr(one, "_store", lambda pending, now: None)
    monkeypatch.setattr(one, "_adapt_window", lambda: None)
    monkeypatch.setattr(feed, "tallies", Tallies(feed.OF_FEED))
    for tag in (1, 2):
        inbox.delivered(Delivery(tag, b""))
    assert one.step(0.01) and not one.step(0.01)
    assert sorted(feed.tallies.samples()) == [
        ("ma_feed_letters_total", (), 2),
        ("ma_feed_steps_total", ("idle",), 1),
        ("ma_feed_steps_total", ("stored",), 1),
    ]
