"""A tiny MA over HTTP: says what is desired, takes records once each, and misbehaves when told to."""

import gzip
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

from contract.messages import DesiredRun, DesiredState
from contract.wire import dump
from tests.kma.fakes import FIGURES


class FakeMa:
    """`answers`: (status, headers, body or None) given before anything else, one per request to
    `protocols`."""

    def __init__(self, server: str = "srv-1") -> None:
        self.server = server
        self.desired = DesiredState(server, "v0", ())
        self.heartbeats: list[dict[str, Any]] = []
        self.batches: list[list[dict[str, Any]]] = []
        self.last_batch: dict[str, Any] = {}
        self.connections: list[
            tuple[str, str]
        ] = []  # path and what the request wants to become of its connection
        self.records: dict[str, dict[str, Any]] = {}
        self.marks: dict[str, int] = {}
        self.answers: list[tuple[int, dict[str, str], Any]] = []
        self.refuse: set[int] = set()
        self.largest = 500
        self.token = "kma_secret"
        self.down = False
        self.pending: dict[str, str] = {}  # answers that people gave: acknowledgement id -> action
        self.asked: list[dict[str, Any]] = []
        self.replies: list[tuple[int, Any]] = []  # to answers that agents give, one each
        self._lock = threading.Lock()
        ma = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                ma.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._httpd.server_port}"

    def close(self) -> None:
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()

    def want(self, *runs: DesiredRun) -> None:
        with self._lock:
            self.desired = DesiredState(self.server, uuid4().hex, runs)

    def lose(self, spool: str, after: int) -> None:
        """The database is put back from a copy: of one spool, all that there is."""
        with self._lock:
            self.marks[spool] = after
            self.records = {key: record for key, record in self.records.items() if record["number"] <= after}

    def kinds(self) -> list[str]:
        """Without figures of minutes: how many of those there are, the clock decides."""
        with self._lock:
            return [record["kind"] for record in self.records.values() if record["kind"] != FIGURES]

    def contents(self, kind: str) -> list[dict[str, Any]]:
        with self._lock:
            return [record["content"] for record in self.records.values() if record["kind"] == kind]

    def spooled(self, closing: Mapping[str, Any]) -> int:
        """Records before the closing one, by its word, without figures."""
        return int(closing["records"]) - len(self.contents(FIGURES))

    @property
    def last(self) -> dict[str, Any]:
        return self.heartbeats[-1] if self.heartbeats else {"runs": [], "problems": []}

    # -- requests --------------------------------------------------------------------------------------------

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.connections.append((request.path, request.headers.get("Connection", "")))
        raw = request.rfile.read(int(request.headers["Content-Length"]))
        if request.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        with self._lock:
            status, headers, body = self._decide(request, json.loads(raw))
        content = json.dumps(body).encode()
        request.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _decide(self, request: BaseHTTPRequestHandler, body: Any) -> tuple[int, dict[str, str], Any]:
        if self.down:
            return 503, {}, {}
        if (
            request.headers["Authorization"] != f"Bearer {self.token}"
            or body.get("server", self.server) != self.server
        ):
            return 403, {}, {"detail": "no"}
        if request.path == "/api/v1/acknowledgements/":
            self.asked.append(body)
            status, content = self.replies.pop(0)
            return status, {}, content
        if request.path == "/api/v1/heartbeat/":
            return 200, {}, self._heartbeat(body)
        if self.answers:
            status, headers, content = self.answers.pop(0)
            return status, headers, content
        if len(body["records"]) > self.largest:
            return 413, {}, {"limit": self.largest}
        return 200, {}, self._store(body)

    def _heartbeat(self, body: Any) -> Any:
        self.heartbeats.append(body)
        known = body["desired_version"] == self.desired.version
        spool = body["spool"]
        mark = self.marks.get(spool["id"], 0)
        return {
            "now": body["sent_at"],
            "desired_version": self.desired.version,
            "desired": None if known else dump(self.desired),
            "answers": [{"acknowledgement": one, "action": action} for one, action in self.pending.items()],
            "spool_stored_up_to": mark if spool["after"] is not None and mark < spool["after"] else None,
        }

    def _store(self, body: Any) -> Any:
        mark = self.marks.get(body["spool"], 0)
        if body["after"] is not None and mark < body["after"]:
            return {"stored_up_to": mark}
        fresh = [record for record in body["records"] if record["number"] > mark]
        refused = [record for record in fresh if record["number"] in self.refuse]
        self.batches.append(body["records"])
        self.last_batch = body
        for record in fresh:
            if record not in refused:
                assert record["id"] not in self.records, "stored twice"
                self.records[record["id"]] = record
                if record["kind"] == "acknowledgement_ended":
                    self.pending.pop(record["content"]["acknowledgement"], None)
        if fresh:
            self.marks[body["spool"]] = mark = fresh[-1]["number"]
        return {
            "stored_up_to": mark,
            "new": len(fresh) - len(refused),
            "refused": [{"number": record["number"], "reason": "test"} for record in refused],
        }
