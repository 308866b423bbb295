"""Answers that agents give to deliveries of other runs, also on other servers: they go to the MA."""

import threading
import time
from collections.abc import Callable

from kma.ma_client import MaClient, NotAllowed, Rejected, Unanswered
from kma.sdk.job import NOT_YET, Question, Reply

_AT_ONCE = 8  # questions that wait at the MA
_PAUSE = 0.5  # seconds before the MA is asked again
PENDING = "pending"

# `elsewhere(question, told)`: `told` gets the reply, from another thread.
AnswerRemotely = Callable[[Question, Callable[[Reply], None]], None]


def without_ma(question: Question, told: Callable[[Reply], None]) -> None:
    told(Reply("", "This container is not connected to an MA."))


class RemoteAnswers:
    """Any thread. `ask` never waits: each question has a thread, which ends with this process if it must."""

    def __init__(self, client: Callable[[], MaClient]) -> None:
        self._client = client
        self._room = threading.Semaphore(_AT_ONCE)
        self._closing = threading.Event()

    def ask(self, question: Question, told: Callable[[Reply], None]) -> None:
        deadline = time.monotonic() + question.seconds
        threading.Thread(
            target=self._main, args=(question, deadline, told), name="answer", daemon=True
        ).start()

    def close(self) -> None:
        self._closing.set()

    def _main(self, question: Question, deadline: float, told: Callable[[Reply], None]) -> None:
        with self._room:
            client = self._client()
            try:
                reply = self._reply(client, question, deadline)
            except Exception as error:  # the agent waits for a word
                reply = Reply("", f"{type(error).__name__}: {error}", temporary=True)
            finally:
                client.close()
        told(reply)

    def _reply(self, client: MaClient, question: Question, deadline: float) -> Reply:
        """The same answer again is safe, so the MA is asked until it knows the end of it."""
        while True:
            try:
                answer = client.acknowledge(question.acknowledgement, question.action)
                if answer.state != PENDING:
                    return Reply(answer.state, answer.reason)
                problem = answer.reason or NOT_YET
            except Unanswered as error:
                problem = str(error)
            except NotAllowed as error:
                return Reply("", f"The MA does not allow this server to answer the delivery: {error}")
            except Rejected as error:
                return Reply(str(error.body.get("state", "")), str(error.body.get("reason") or error))
            if time.monotonic() + _PAUSE >= deadline or self._closing.wait(_PAUSE):
                return Reply("", problem, temporary=True)
