"""Talks to the MA: heartbeats, and the spool's records in order. A record that is refused never blocks the next."""

import gzip
import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import requests

from contract.acknowledging import Action, AnswerReply
from contract.errors import ContractError
from contract.messages import MAX_RECORDS, Heartbeat, HeartbeatReply, RecordBatch, RecordReceipt
from contract.wire import dump, load
from kma.logs import logger
from kma.spool import Spool

CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0
HEARTBEAT_SECONDS = 10.0  # for the answer to a heartbeat: runs must be seen to meanwhile
BATCH_BYTES = 4 * 1024 * 1024  # before gzip
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
LONGEST_ASKED_PAUSE = 300.0  # of what the MA asks for by Retry-After
Answer = TypeVar("Answer", HeartbeatReply, RecordReceipt, AnswerReply)
_TRIES_OF_ONE = 3  # of a single record that the MA answers with 4xx, before it is put aside


class Unanswered(Exception):
    """The MA is away, too busy, or made a mistake: try again later. `after`: seconds that it asked for."""

    def __init__(self, problem: str, after: float | None = None) -> None:
        super().__init__(problem)
        self.after = after


class NotAllowed(Exception):
    """401 or 403: the token is wrong, revoked, or of another server. Operator: make a new one with `create_server`."""


class Rejected(Exception):
    """The MA understood and will not take this. `too_large`: 413. `body`: its JSON, {} where there is none."""

    def __init__(self, status: int, problem: str, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {problem}")
        self.too_large = status == 413
        self.body = body


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The MA's REST side as one server sees it."""

    url: str
    server: str
    token: str


class MaClient:
    """One thread at a time. Raises Unanswered, NotAllowed, Rejected."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._base = f"{endpoint.url.rstrip('/')}/api/v1"
        self._deadline: float | None = None
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy and no .netrc between a server and its MA
        self._session.headers.update(
            {
                "Authorization": f"Bearer {endpoint.token}",
                "Content-Type": "application/json",
                "Accept": "application/json",
                "User-Agent": f"kma/{endpoint.server}",
            }
        )

    def heartbeat(self, heartbeat: Heartbeat) -> HeartbeatReply:
        return _read(HeartbeatReply, self._post("heartbeat", dump(heartbeat), HEARTBEAT_SECONDS))

    def deliver(self, batch: RecordBatch) -> RecordReceipt:
        return _read(RecordReceipt, self._post("protocols", dump(batch), ANSWER_SECONDS, compress=True))

    def acknowledge(self, acknowledgement: str, action: Action) -> AnswerReply:
        """Also of another server's delivery. The MA lets this wait for some seconds."""
        body = {"acknowledgement": acknowledgement, "action": action.value}
        return _read(AnswerReply, self._post("acknowledgements", body, ANSWER_SECONDS))

    def close(self) -> None:
        self._session.close()

    def hurry(self, seconds: float) -> None:
        """This process ends: what is asked from now on is answered within so many seconds from now, or not at all."""
        self._deadline = time.monotonic() + seconds

    def _timeouts(self, seconds: float) -> tuple[float, float]:
        """(connect, answer)"""
        if self._deadline is None:
            return CONNECT_SECONDS, seconds
        left = max(0.1, self._deadline - time.monotonic())
        return min(CONNECT_SECONDS, left), min(seconds, left)

    def _post(self, name: str, body: Any, seconds: float, *, compress: bool = False) -> Any:
        data = json.dumps(body, ensure_ascii=False).encode()
        headers = {}
        if compress:
            # A connection that stays open belongs to one process of the site, whatever others there are, and those of
            # all KMAs may belong to the same one.
            data, headers = gzip.compress(data, 5), {"Content-Encoding": "gzip", "Connection": "close"}
        try:
            answer = self._session.post(
                f"{self._base}/{name}/",
                data=data,
                headers=headers,
                timeout=self._timeouts(seconds),
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise Unanswered(f"the MA at {self._base} does not answer ({type(error).__name__})") from error
        return self._content(answer)

    @staticmethod
    def _content(answer: requests.Response) -> Any:
        status, text = answer.status_code, answer.text[:300]
        if status in (401, 403):
            raise NotAllowed(f"{status}: {text}")
        if status in (408, 429) or status >= 500 or 300 <= status < 400:
            raise Unanswered(f"the MA answers {status}", asked_pause(answer.headers.get("Retry-After")))
        if status == 400 and _body(answer).get("error") == "unsupported_version":
            # Not the records' fault: they wait for the MA to be upgraded.
            raise Unanswered("the MA speaks another version: upgrade the older of the two", LONGEST_PAUSE)
        if status >= 400:
            raise Rejected(status, text, _body(answer))
        try:
            return answer.json()
        except ValueError as error:
            raise Unanswered("the MA's answer is no JSON: is MA_URL the MA?") from error


def _body(answer: requests.Response) -> dict[str, Any]:
    """Of a refusal, with a stable word as `error`; {} where there is none."""
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _read(kind: type[Answer], data: Any) -> Answer:
    try:
        return load(kind, data)
    except ContractError as error:
        raise Unanswered(f"the MA's answer is not understood: {error}") from error


def asked_pause(header: str | None) -> float | None:
    """Seconds by a Retry-After header (seconds or a date), bounded; None without one or when it is neither."""
    if not header:
        return None
    try:
        seconds = float(header) if header.strip().isdigit() else _until(header)
    except (ValueError, TypeError):
        return None
    return max(0.0, min(seconds, LONGEST_ASKED_PAUSE))


def _until(date: str) -> float:
    return (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()


class Pause:
    """Growing pauses with full jitter: servers that lost the MA together do not come back together."""

    def __init__(
        self, draw: Callable[[float, float], float] = random.uniform, *, longest: float = LONGEST_PAUSE
    ) -> None:
        self._draw = draw
        self._bound = longest
        self._longest = FIRST_PAUSE

    def reset(self) -> None:
        self._longest = FIRST_PAUSE

    def next(self, asked: float | None = None) -> float:
        """Seconds to wait now."""
        longest, self._longest = self._longest, min(self._longest * 2, self._bound)
        return max(asked or 0.0, self._draw(FIRST_PAUSE / 2, longest))


class Reporter:
    """Drains the spool. `step` does one request and answers how long to wait before the next."""

    IDLE = 0.2
    TIDY = 60.0  # between looks at what was taken long ago

    def __init__(self, client: MaClient, spool: Spool, server: str) -> None:
        self._client = client
        self._spool = spool
        self._server = server
        self._pause = Pause()
        self._limit = MAX_RECORDS
        self._tries = 0
        self._asked_for: tuple[int, int | None] | None = None
        self._tidy_at = 0.0
        self._log = logger(server=server)
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._main, name="reporter", daemon=True)
        self.problem = ""

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """The MA answers again: no need to wait for the end of a pause."""
        self._pause.reset()
        self._wake.set()

    def send_again(self, stored_up_to: int, told: int | None) -> None:
        """The MA has no more than this of the spool, though we `told` it that it had taken more. From any thread."""
        self._asked_for = stored_up_to, told
        self.wake()

    def stop(self, *, drain_seconds: float) -> None:
        """Sends what is left, as long as the MA answers and time remains; what is not sent stays on disk.

        A request that is under way when time is up is left alone: its records come again, and the MA knows them.
        """
        deadline = time.monotonic() + drain_seconds
        self._client.hurry(drain_seconds)
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(drain_seconds)
            if self._thread.is_alive():
                return
        while time.monotonic() < deadline and self._spool.report().rows:
            self.step()
            if self.problem:
                break

    def _main(self) -> None:
        while not self._stop.is_set():
            try:
                wait = self.step()
            except Exception as error:
                self._log.exception("reporter failed")
                self.problem = f"nothing is reported: {type(error).__name__}: {error}"[:500]
                wait = LONGEST_PAUSE
            if wait and self._wake.wait(wait):
                self._wake.clear()

    def step(self) -> float:
        """Sends one batch, if there is one. Seconds to wait."""
        self._tidy()
        if self._asked_for is not None:
            (stored, told), self._asked_for = self._asked_for, None
            if told == self._spool.delivered():  # else a batch was faster, or has gone back already
                self._go_back(stored)
        # The mark moves in this thread only: it is the one of these records.
        records, after = self._spool.head(self._limit, BATCH_BYTES), self._spool.delivered()
        if not records:
            self.problem = ""
            return self.IDLE
        batch = RecordBatch(
            self._server,
            self._spool.id,
            tuple(records),
            sent_at=datetime.now(UTC),
            after=after,
            first=self._spool.first,
        )
        try:
            receipt = self._client.deliver(batch)
        except Unanswered as error:
            return self._wait(f"records are not taken: {error}", error.after)
        except NotAllowed as error:
            return self._wait(f"records are not taken, the token is refused: {error}", LONGEST_PAUSE)
        except Rejected as error:
            return self._rejected(error, [record.number for record in records])
        self._pause.reset()
        self._tries = 0
        self._limit = min(MAX_RECORDS, self._limit * 2)
        self.problem = ""
        if after is not None and receipt.stored_up_to < after:
            again = self._go_back(receipt.stored_up_to)
            return 0.0 if again else self._wait("the MA asks for records that are not here any more", None)
        return self._taken(receipt, records[-1].number)

    def _tidy(self) -> None:
        if time.monotonic() >= self._tidy_at:
            self._tidy_at = time.monotonic() + self.TIDY
            if self._spool.forget_old():
                self._tidy_at = 0.0  # there may be more: with the next step

    def _go_back(self, stored_up_to: int) -> int:
        """Its database was put back from a copy, or lost its last commits: how much of that is sent again."""
        again = self._spool.send_again(stored_up_to)
        if again:
            self._log.warning("the MA has lost records: sent again", stored=stored_up_to, records=again)
        return again

    def _taken(self, receipt: RecordReceipt, sent: int) -> float:
        for refusal in receipt.refused:
            self._log.error("record refused", number=refusal.number, reason=refusal.reason)
            self._spool.put_aside(refusal.number, refusal.reason)
        if receipt.stored_up_to > self._spool.last_number():
            # The MA knows higher numbers of this spool than it ever gave: the file was put back from a copy. What it
            # holds would be taken for known, so it goes on under a new identity; the records' ids keep them single.
            self._log.error("the spool is older than what the MA has of it", stored=receipt.stored_up_to)
            self._spool.renew_id()
            return 0.0
        self._spool.taken(receipt.stored_up_to)
        if receipt.stored_up_to < sent:
            return self._wait("the MA has stored only a part of a batch", None)
        return 0.0

    def _rejected(self, error: Rejected, numbers: list[int]) -> float:
        """A batch that will not do is halved until one record is left, and that one is put aside in the end."""
        self._log.error("records rejected", records=len(numbers), error=str(error))
        if len(numbers) > 1:
            self._limit = max(1, len(numbers) // 2)
            return 0.0
        self._tries += 1
        if self._tries < _TRIES_OF_ONE and not error.too_large:
            return self._wait(f"record {numbers[0]} is not taken: {error}", None)
        self._tries = 0
        self._spool.put_aside(numbers[0], str(error))
        return 0.0

    def _wait(self, problem: str, asked: float | None) -> float:
        if problem != self.problem:
            self._log.warning("not reported", problem=problem)
        self.problem = problem
        return self._pause.next(asked)
