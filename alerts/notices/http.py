"""The one sender of every channel that is a POST of JSON.

The address may be private: an operator names it, on purpose. Redirects are not followed: the signature and
the body belong to that address only. What is answered is not read: only the status and `Retry-After` count.
"""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.utils import requote_uri
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from alerts.notices.channels.request import OutgoingRequest
from console.ui.text import masked

# The time of who waits for it belongs to all other addresses as well.
CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 5.0
# "Max retries exceeded with url: /hook?key=…".
BY_URLLIB3 = re.compile(r"(with url:) \S+")
# An address that asks for more is asked again after this.
LONGEST_WAIT = timedelta(hours=1)
# Statuses whose `Retry-After` is obeyed.
ASKS_TO_WAIT = (429, 503)


class Undelivered(Exception):
    """Nobody took it, or it is not known whether somebody did: tried again later, not before `wait` is over.
    The text is for people."""

    def __init__(self, problem: str, wait: timedelta = timedelta()) -> None:
        super().__init__(problem)
        self.wait = wait


def post(request: OutgoingRequest, now: datetime) -> None:
    """Returns when the address answered 2xx. Raises Undelivered."""
    headers = {"Content-Type": "application/json", "User-Agent": "MA", **request.headers}
    try:
        with requests.Session() as session:
            for scheme in ("http://", "https://"):
                session.mount(scheme, _Bounded())
            with session.post(
                request.url,
                data=request.body,
                headers=headers,
                timeout=(CONNECT_SECONDS, ANSWER_SECONDS),
                allow_redirects=False,
                stream=True,
            ) as answer:
                status, retry_after = answer.status_code, answer.headers.get("Retry-After", "")
    except (requests.RequestException, OSError, ValueError) as error:
        raise Undelivered(_without_address(error, request.url)[:500]) from error
    if 300 <= status < 400:
        raise Undelivered(f"answered {status}: redirects are not followed: enter the final address")
    if not 200 <= status < 300:
        wait = wait_asked_for(retry_after, now) if status in ASKS_TO_WAIT else timedelta()
        raise Undelivered(f"answered {status}", wait)


def wait_asked_for(retry_after: str, now: datetime) -> timedelta:
    """Returns the wait of a `Retry-After`, seconds or a date, within 0 and `LONGEST_WAIT`; of anything else
    none."""
    text = retry_after.strip()
    if text.isascii() and text.isdecimal():
        return min(timedelta(seconds=int(text[:9])), LONGEST_WAIT)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return timedelta()
    if at.tzinfo is None:
        return timedelta()
    return min(max(at - now, timedelta()), LONGEST_WAIT)


def _without_address(error: Exception, url: str) -> str:
    """Leaves out path and query of the address, which are secrets as a rule: the text is shown to
    everybody."""
    text = str(error)
    for whole in (url, requote_uri(url)):
        text = text.replace(whole, masked(url))
    text = BY_URLLIB3.sub(r"\1 /…", text)
    return f"{type(error).__name__}: {text}"


# -- an answer that comes a byte at a time is bounded too ----------------------------------------------------
# The timeout of a socket begins anew with each byte. A timer closes the socket when the whole answer takes
# too long.


@contextmanager
def _bounded(connection: HTTPConnection) -> Iterator[None]:
    late = threading.Event()
    timer = threading.Timer(ANSWER_SECONDS, _shut, [connection.sock, late])
    timer.daemon = True
    timer.start()
    too_late = TimeoutError(f"no whole answer within {ANSWER_SECONDS:g} s")
    try:
        yield
    except OSError as error:  # where nothing came it looks as if the other side had closed
        if not late.is_set():
            raise
        raise too_late from error
    finally:
        timer.cancel()
    if late.is_set():  # what came until then looks like a whole answer
        raise too_late


def _shut(sock: socket.socket | None, late: threading.Event) -> None:
    late.set()
    try:
        if sock is not None:
            sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # closed already: the answer came in the same moment


class _Plain(HTTPConnection):
    def getresponse(self) -> Any:
        with _bounded(self):
            return super().getresponse()


class _Encrypted(HTTPSConnection):
    def getresponse(self) -> Any:
        with _bounded(self):
            return super().getresponse()


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _EncryptedPool(HTTPSConnectionPool):
    ConnectionCls = _Encrypted


class _Bounded(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _EncryptedPool}
