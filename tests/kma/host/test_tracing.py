"""Spans reach a collector by OTLP over HTTP; one that is away, or packages that are missing, stop nothing."""

import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import requests
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from contract.messages import Mode
from contract.outcomes import Outcome
from contract.records import RecordRun
from contract.typed import Typed
from deploy.services.ports import free_ports
from exposition.trace import attempt_context
from kma.delivery.trace import TracedHandling
from kma.host import tracing
from kma.host.tracing import span_sender
from tests.broker.houses import RealHouse
from tests.kma.conftest import Lines, StartWorker
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually
from tests.kma.queues import of, publish, script

pytestmark = pytest.mark.process

RUN = RecordRun("orders", UUID(int=1), 1, "srv-1", "shop.orders", "1.3")


def context(attempt: int) -> Any:
    return attempt_context("orders", "ID:1", attempt, UUID(int=0))


def handling(attempt: int = 2, outcome: Outcome = Outcome.RAISED, error: str = "KeyError") -> TracedHandling:
    links = (context(attempt - 1),) if attempt > 1 else ()
    return TracedHandling(
        RUN,
        "shop.orders",
        context(attempt),
        links,
        attempt,
        outcome,
        error,
        1_700_000_000.25,
        1_700_000_001.5,
    )


class Collector:
    """Takes spans as an OpenTelemetry collector does."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    one = Collector()
    yield one
    one.close()


def attributes(found: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in found}


def test_a_handling_is_one_span_with_its_links(collector: Collector) -> None:
    sender = span_sender(collector.endpoint, "srv-1")
    assert sender is not None
    sender.send(handling())
    sender.close()
    (span,) = collector.spans()
    assert (span.trace_id.hex(), span.span_id.hex()) == (context(2).trace_id, context(2).span_id)
    assert [(link.trace_id.hex(), link.span_id.hex()) for link in span.links] == [
        (context(1).trace_id, context(1).span_id)
    ]
    assert span.end_time_unix_nano - span.start_time_unix_nano == 1_250_000_000
    assert (span.kind, span.status.code) == (Span.SPAN_KIND_CONSUMER, Status.STATUS_CODE_ERROR)
    found = attributes(span.attributes)
    assert (found["ma.setting"], found["ma.attempt"], found["error.type"]) == ("orders", 2, "KeyError")
    assert found["messaging.destination.name"] == "shop.orders"
    resource = attributes(collector.requests[0].resource_spans[0].resource.attributes)
    assert (resource["service.name"], resource["service.instance.id"]) == ("kma", "srv-1")


def test_what_went_well_or_was_given_back_is_no_error(collector: Collector) -> None:
    sender = span_sender(collector.endpoint, "srv-1")
    assert sender is not None
    sender.send(handling(1, Outcome.RETURNED, ""))
    sender.send(handling(1, Outcome.RELEASED, ""))
    sender.close()
    assert [span.status.code for span in collector.spans()] == [Status.STATUS_CODE_UNSET] * 2
    assert all("error.type" not in attributes(span.attributes) for span in collector.spans())


def test_a_collector_that_is_away_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "SEND_SECONDS", 0.2)
    sender = span_sender("http://127.0.0.1:1/v1/traces", "srv-1")
    assert sender is not None
    for _ in range(3 * tracing.MOST_WAITING):
        sender.send(handling())
    closing = threading.Thread(target=sender.close)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()


def test_without_an_endpoint_nothing_of_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert span_sender("", "srv-1") is None


def test_packages_that_are_missing_are_told_and_nothing_is_traced(
    monkeypatch: pytest.MonkeyPatch, lines: Lines
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert span_sender("http://127.0.0.1:4318/v1/traces", "srv-1") is None
    (line,) = [line for line in lines if line["log_level"] == "error"]
    assert "requirements-traces.txt" in line["event"]


def test_a_container_tells_a_collector_of_each_attempt_and_prometheus_of_all(
    collector: Collector, house: RealHouse, ma: FakeMa, start: StartWorker
) -> None:
    setting = house.setting(attempts=3)
    producer = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    once = {"do": "raise", "type": "KeyError", "first": 1}
    properties = {"traceparent": Typed("string", producer)}
    publish(house, setting, replace(script(once, "ID:once"), properties=properties))
    ma.want(of(setting, mode=Mode.TRANSACTED))
    (port,) = free_ports(1)
    environment = {"KMA_TRACE_ENDPOINT": collector.endpoint, "KMA_METRICS_ADDRESS": f"127.0.0.1:{port}"}
    worker = start(environment=environment)
    eventually(lambda: len(collector.spans()) == 2, "both attempts")
    first, second = sorted(collector.spans(), key=lambda span: span.start_time_unix_nano)
    assert [attributes(span.attributes)["ma.result"] for span in (first, second)] == ["raised", "returned"]
    assert [link.trace_id.hex() for link in first.links] == [producer.split("-")[1]]
    assert [link.span_id for link in second.links][1:] == [first.span_id]

    def counted() -> str:
        return requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text

    done = f'kma_handlings_total{{result="succeeded",setting="{setting.key}"}} 1.0'
    eventually(lambda: done in counted(), "the counter")
    found = counted()
    assert f'kma_handlings_total{{result="failed",setting="{setting.key}"}} 1.0' in found
    assert f'kma_children{{setting="{setting.key}"}} 1.0' in found and "kma_ma_up 1.0" in found
    measured = f'kma_processing_seconds_count{{setting="{setting.key}"}} 2.0'
    eventually(lambda: measured in counted(), "how long it took")
    held = re.compile(rf'kma_children_bytes{{setting="{setting.key}"}} [1-9]')
    eventually(lambda: held.search(counted()) is not None, "the memory of its process")
    worker.stop()
    with pytest.raises(requests.ConnectionError):
        counted()


@pytest.mark.kill
def test_an_attempt_that_died_with_a_container_is_counted_by_the_next_one(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting, truth = house.setting(attempts=3), tmp_path / "truth"
    publish(house, setting, script({"do": "sleep", "seconds": 60, "first": 1}, "ID:died"))
    ma.want(of(setting, mode=Mode.TRANSACTED, parameters={"truth_file": str(truth)}))
    (port,) = free_ports(1)
    worker = start(environment={"KMA_METRICS_ADDRESS": f"127.0.0.1:{port}"})
    eventually(lambda: len(worker.truth(truth)) == 1, "its first attempt")
    worker.kill()
    worker.start()

    def counted(result: str, number: float) -> bool:
        found = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
        return f'kma_handlings_total{{result="{result}",setting="{setting.key}"}} {number}' in found

    eventually(lambda: bool(ma.contents("recovered")), "its second attempt")
    eventually(lambda: counted("succeeded", 1.0), "its success")
    assert counted("failed", 1.0)


def test_a_container_starts_again_at_0_though_its_runs_go_on(
    house: RealHouse, ma: FakeMa, start: StartWorker
) -> None:
    setting = house.setting()
    ma.want(of(setting))
    publish(house, setting, script({"do": "ok"}), script({"do": "ok"}))
    (port,) = free_ports(1)
    worker = start(environment={"KMA_METRICS_ADDRESS": f"127.0.0.1:{port}"})

    def handled() -> str:
        try:
            found = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
        except requests.ConnectionError:
            return ""
        lines = [
            line for line in found.splitlines() if line.startswith('kma_handlings_total{result="succeeded"')
        ]
        return lines[0].split()[-1] if lines else ""

    eventually(lambda: handled() == "2.0", "both")
    worker.stop()
    worker.start()
    eventually(lambda: handled() == "0.0", "nothing was handled by this process")
    publish(house, setting, script({"do": "ok"}))
    eventually(lambda: handled() == "1.0", "one more")
    eventually(lambda: any(run["handled"] == 3 for run in ma.last["runs"]), "the run goes on")
