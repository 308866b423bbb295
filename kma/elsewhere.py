"""Answers that agents give to deliveries of other runs, also on other servers: they go to the MA."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from contract.acknowledging import AnswerReply
from kma.asking import NOT_YET, Question, Reply
from kma.reporter import MaClient, NotAllowed, Rejected, Unanswered

_AT_ONCE = 8  # questions that wait at the MA
_PAUSE = 0.5  # seconds before the MA is asked again after it did not answer
PENDING = "pending"

# `elsewhere(question, told)`: `told` gets the reply, from another thread.
Elsewhere = Callable[[Question, Callable[[Reply], None]], None]


def nowhere(question: Question, told: Callable[[Reply], None]) -> None:
    told(Reply("", "This container has no MA."))


class AnswersElsewhere:
    """Any thread. `ask` never waits."""

    def __init__(self, client: Callable[[], MaClient]) -> None:
        self._client = client
        self._local = threading.local()
        self._threads = ThreadPoolExecutor(_AT_ONCE, "answers")
        self._closing = threading.Event()

    def ask(self, question: Question, told: Callable[[Reply], None]) -> None:
        deadline = time.monotonic() + question.seconds
        self._threads.submit(lambda: told(self._reply(question, deadline)))

    def close(self) -> None:
        self._closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _reply(self, question: Question, deadline: float) -> Reply:
        """The same answer again is safe, so the MA is asked until it knows the end of it."""
        while True:
            try:
                answer = self._ask_once(question)
                if answer.state != PENDING:
                    return Reply(answer.state, answer.reason)
                problem = answer.reason or NOT_YET
            except Unanswered as error:
                problem = str(error)
                self._closing.wait(_PAUSE)
            except NotAllowed as error:
                return Reply("", f"The MA does not let this server answer it: {error}")
            except Rejected as error:
                return Reply(str(error.body.get("state", "")), str(error.body.get("reason") or error))
            if self._closing.is_set() or time.monotonic() >= deadline:
                return Reply("", problem, temporary=True)

    def _ask_once(self, question: Question) -> AnswerReply:
        client: MaClient | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = self._client()
        return client.acknowledge(question.acknowledgement, question.action)
