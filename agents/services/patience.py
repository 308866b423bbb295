"""A page waits for the broker only so long: one that hangs would hold every page for the timeout of its
client."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from broker.errors import BrokerTimeout

T = TypeVar("T")

WAIT_SECONDS = 1.5

# Held by the call under way, also by one that nobody waits for any more.
_turn = threading.Lock()


def bounded(call: Callable[[], T]) -> T:
    """The answer of `call`, or BrokerTimeout. A call that takes longer goes on alone, and the next ones wait
    for it."""
    if not _turn.acquire(timeout=WAIT_SECONDS):
        raise BrokerTimeout("the broker has not answered the question before")
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
