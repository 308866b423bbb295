"""Answers to deliveries of other runs: what an agent is told for each word, or silence, of the MA."""

from queue import SimpleQueue
from typing import Any

import pytest

from contract.acknowledgements import Action, AnswerReply
from kma.acknowledgement import remote
from kma.acknowledgement.remote import RemoteAnswers
from kma.ma_client import NotAllowed, Rejected, Unanswered
from kma.sdk.job import Question, Reply

PENDING, DONE = AnswerReply("pending"), AnswerReply("committed")


class FakeClient:
    """Answers with what it was given, the last of it again and again."""

    def __init__(self, *words: AnswerReply | Exception) -> None:
        self.words = list(words)
        self.asked = 0
        self.closed = False

    def acknowledge(self, acknowledgement: str, action: Action) -> AnswerReply:
        self.asked += 1
        word = self.words.pop(0) if len(self.words) > 1 else self.words[0]
        if isinstance(word, Exception):
            raise word
        return word

    def close(self) -> None:
        self.closed = True


def told(client: Any, seconds: float = 5.0) -> Reply:
    found: SimpleQueue[Reply] = SimpleQueue()
    RemoteAnswers(lambda: client).ask(Question("an-id", Action.COMMIT, seconds), found.put)
    return found.get(timeout=20)


@pytest.mark.parametrize(
    ("word", "reply"),
    [
        (DONE, Reply("committed")),
        (AnswerReply("lost", "it went"), Reply("lost", "it went")),
        (Rejected(410, "{}", {"state": "expired", "reason": "too late"}), Reply("expired", "too late")),
        (Rejected(404, "none", {}), Reply("", "404: none")),
        (
            NotAllowed("403: no"),
            Reply("", "The MA does not allow this server to answer the delivery: 403: no"),
        ),
    ],
)
def test_the_mas_word_is_passed_on(word: AnswerReply | Exception, reply: Reply) -> None:
    client = FakeClient(word)
    assert told(client) == reply
    assert client.asked == 1 and client.closed


def test_the_same_is_asked_until_the_end_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PAUSE", 0.01)
    client = FakeClient(PENDING, Unanswered("away"), PENDING, DONE)
    assert told(client) == Reply("committed") and client.asked == 4


def test_patience_ends_and_the_agent_may_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PAUSE", 0.01)
    assert told(FakeClient(Unanswered("away")), 0.1) == Reply("", "away", temporary=True)
    assert told(FakeClient(PENDING), 0.1).temporary


def test_an_mas_mistake_that_nobody_expects_leaves_no_agent_waiting() -> None:
    client = FakeClient(RuntimeError("boom"))
    reply = told(client)
    assert reply.temporary and "boom" in reply.reason and client.asked == 1
