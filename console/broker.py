"""One management connection per process, made when it is first needed, and how long a page waits for its
answers."""

import os
import re
import secrets
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from django.conf import settings

from broker.port import BrokerTimeout, Management
from broker.stomp.client import StompManagement

# Pages wait for it: an answer normally takes milliseconds.
TIMEOUT_SECONDS = 10.0
# A broker that hangs would hold every page for the timeout of its client.
WAIT_SECONDS = 1.5

T = TypeVar("T")

# In containers processes of two hosts may have one name and one pid.
_UNIQUE = secrets.token_hex(4)
_lock = threading.Lock()
_connection: Management | None = None
_process = 0
# Held by the call under way, also by one that nobody waits for any more.
_turn = threading.Lock()


def management() -> Management:
    """Safe between threads; a forked process makes its own (two readers of one reply queue take each
    other's)."""
    global _connection, _process
    with _lock:
        if _connection is None or _process != os.getpid():
            _connection = StompManagement(settings.MA_BROKER_STOMP, reply_queue(), TIMEOUT_SECONDS)
            _process = os.getpid()
        return _connection


def reply_queue() -> str:
    """One per process; the broker deletes it when the process is gone (address settings of MA.reply.#)."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())
    return f"MA.reply.{host}-{os.getpid()}-{_UNIQUE}"


def with_timeout(call: Callable[[], T]) -> T:
    """The answer of `call`, or BrokerTimeout. A call that takes longer goes on alone, and the next ones wait
    for it."""
    if not _turn.acquire(timeout=WAIT_SECONDS):
        raise BrokerTimeout("the broker has not answered the previous request")
    answer: Future[T] = Future()
    threading.Thread(target=_carry_out, args=(call, answer), name="broker-question", daemon=True).start()
    try:
        return answer.result(timeout=WAIT_SECONDS)
    except TimeoutError as error:
        raise BrokerTimeout(f"no answer within {WAIT_SECONDS:g} s") from error


def _carry_out(call: Callable[[], T], answer: "Future[T]") -> None:
    try:
        answer.set_result(call())
    except Exception as error:
        answer.set_exception(error)
    finally:
        _turn.release()
