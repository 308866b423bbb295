"""The MA's REST side for one server: heartbeats, records and answers, with bounds on the time that each may
take."""

import gzip
import io
import json
import ssl
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import requests
from urllib3.exceptions import ProtocolError

from contract.acknowledgements import Action, AnswerReply
from contract.encryption import SYSTEM, TlsFiles, tls_problem
from contract.messages import Heartbeat, HeartbeatReply, RecordBatch, RecordReceipt
from contract.wire import ContractError, dump, load

CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 30.0
HEARTBEAT_SECONDS = 10.0  # for the answer to a heartbeat: runs must be seen to meanwhile
SEND_SECONDS = (
    30.0  # for what is sent: above the time that the MA gives a body, so that its 408 is what ends it
)
LONGEST_ASKED_PAUSE = 300.0  # of what the MA asks for by Retry-After
LONGEST_PAUSE = 30.0
Answer = TypeVar("Answer", HeartbeatReply, RecordReceipt, AnswerReply)


class Unanswered(Exception):
    """The MA is away, too busy, or made a mistake: try again later. `after`: seconds that it asked for."""

    def __init__(self, problem: str, after: float | None = None) -> None:
        super().__init__(problem)
        self.after = after


class TooSlow(Unanswered):
    """The MA is there, but a request did not come through in its time, or its answer did not: send less at
    once. `link`: the MA waited for the whole of it in vain, so nothing was stored."""

    def __init__(self, problem: str, after: float | None = None, *, link: bool) -> None:
        super().__init__(problem, after)
        self.link = link


class NotAllowed(Exception):
    """401 or 403: the token is wrong, revoked, or of another server. Operator: make a new one with
    `create_server`."""


class Rejected(Exception):
    """The MA understood and will not take this. `too_large`: 413. `body`: its JSON, {} where there is
    none."""

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
    tls: TlsFiles = SYSTEM


class _Body(io.BytesIO):
    """What is sent, in pieces that each have a connection's time, all of them together `seconds`."""

    def __init__(self, data: bytes, seconds: float) -> None:
        super().__init__(data)
        self._size = len(data)
        self._until = time.monotonic() + seconds

    @property
    def sent(self) -> bool:
        """The system has taken all of it; what is still on its way may be as much as it buffers."""
        return self.tell() == self._size

    def read(self, size: int | None = -1) -> bytes:
        if time.monotonic() > self._until:
            raise TimeoutError("the link is too slow")
        return super().read(size)


class MaClient:
    """One thread at a time. Raises Unanswered, NotAllowed, Rejected."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._base = f"{endpoint.url.rstrip('/')}/api/v1"
        self._deadline: float | None = None
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy and no .netrc between a server and its MA
        if endpoint.tls.ca:
            self._session.verify = endpoint.tls.ca
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
        """This process ends: what is asked from now on is answered within so many seconds from now, or not at
        all."""
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
            # A connection that stays open belongs to one process of the site, whatever others there are, and
            # those of all KMAs may belong to the same one.
            data, headers = gzip.compress(data, 5), {"Content-Encoding": "gzip", "Connection": "close"}
        timeouts = self._timeouts(seconds)
        content = _Body(data, min(SEND_SECONDS, timeouts[1]))
        try:
            answer = self._session.post(
                f"{self._base}/{name}/",
                data=content,
                headers=headers,
                timeout=timeouts,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise self._unanswered(error, content) from error
        return self._content(answer)

    def _unanswered(self, error: Exception, content: _Body) -> Unanswered:
        if (refused := _tls_error(error)) is not None:
            return Unanswered(tls_problem(refused, f"the MA at {self._base}"))
        problem = f"the MA at {self._base} does not answer ({type(error).__name__})"
        if not content.sent and content.tell():
            return TooSlow(
                f"the link to the MA at {self._base} is too slow ({type(error).__name__})", link=True
            )
        cut = isinstance(error, requests.ConnectionError) and any(
            isinstance(a, ProtocolError) for a in error.args
        )
        return (
            TooSlow(problem, link=False)
            if cut or isinstance(error, requests.ReadTimeout)
            else Unanswered(problem)
        )

    @staticmethod
    def _content(answer: requests.Response) -> Any:
        status, text = answer.status_code, answer.text[:300]
        if status in (401, 403):
            raise NotAllowed(f"{status}: {text}")
        after = asked_pause(answer.headers.get("Retry-After"))
        if status == 408:
            raise TooSlow("the MA did not receive the whole request in time (408)", after, link=True)
        if status == 429 or status >= 500 or 300 <= status < 400:
            raise Unanswered(f"the MA answered {status}", after)
        if status == 400 and _body(answer).get("error") == "unsupported_version":
            # Not the records' fault: they wait for the MA to be upgraded.
            raise Unanswered(
                "the MA uses another protocol version: upgrade the older of the two", LONGEST_PAUSE
            )
        if status >= 400:
            raise Rejected(status, text, _body(answer))
        try:
            return answer.json()
        except ValueError as error:
            raise Unanswered("the MA's response is not JSON: check MA_URL") from error


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """What stands behind an error of requests, whose cause is the cause of the one before it."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error


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
        raise Unanswered(f"invalid response of the MA: {error}") from error


def asked_pause(header: str | None) -> float | None:
    """Seconds by a Retry-After header (seconds or a date), bounded; None without one or when it is
    neither."""
    if not header:
        return None
    try:
        seconds = float(header) if header.strip().isdigit() else _until(header)
    except (ValueError, TypeError):
        return None
    return max(0.0, min(seconds, LONGEST_ASKED_PAUSE))


def _until(date: str) -> float:
    return (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()
