"""The frames between a run and its child processes, over a stream socket.

Each frame: length of the content (u32), kind (u8), slot of the journal (u16), number (u32, the attempt),
content.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from contract.acknowledgements import Action
from contract.outcomes import Outcome
from kma.handling.failure import FailureDetails
from kma.handling.handler import HandlingResult
from kma.sdk.job import Question, Reply

HEAD = struct.Struct("<IBHI")

# Parent to child. After a failure a child begins nothing before RESUME: the parent may find that the breaker
# trips. OPEN_MESSAGE begins with its acknowledgement id. ACKNOWLEDGED replies to ACKNOWLEDGE, see
# kma/handling/child.py.
JOB, MESSAGE, RESUME, OPEN_MESSAGE, ACKNOWLEDGED = 1, 2, 3, 4, 5
# Child to parent. DONE_WITH_SENDS carries the encoded messages, FAILED a protocol's details, PROBLEM why the
# child cannot work at all. RETIRING says that the child takes no more: it wants to be replaced. DONE names no
# slot: which handlings succeeded stands in the journal, it only makes the parent look.
READY, DONE, DONE_WITH_SENDS, FAILED, RECALLED, PROBLEM, RETIRING, ACKNOWLEDGE = (
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    17,
)

Frame = tuple[int, int, int, bytes]


def frame(kind: int, slot: int = 0, number: int = 0, content: bytes = b"") -> bytes:
    return HEAD.pack(len(content), kind, slot, number) + content


def json_frame(kind: int, value: Any, slot: int = 0) -> bytes:
    return frame(kind, slot, 0, json.dumps(value).encode())


def message_frame(slot: int, attempt: int, encoded: bytes, acknowledgement: str = "") -> bytes:
    if not acknowledgement:
        return frame(MESSAGE, slot, attempt, encoded)
    return frame(
        OPEN_MESSAGE, slot, attempt, bytes((len(acknowledgement),)) + acknowledgement.encode() + encoded
    )


def read_message(kind: int, content: bytes) -> tuple[str, bytes]:
    """Acknowledgement id (empty but in the mode CLIENT) and encoded message."""
    if kind == MESSAGE:
        return "", content
    end = 1 + content[0]
    return content[1:end].decode(), content[end:]


class Frames:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Every frame that is whole now: (kind, slot, number, content). What is left waits for more."""
        buffer = self._buffer
        buffer += data
        at, end = 0, len(buffer)
        while end - at >= HEAD.size:
            length, kind, slot, number = HEAD.unpack_from(buffer, at)
            if end - at < HEAD.size + length:
                break
            at += HEAD.size
            yield kind, slot, number, bytes(buffer[at : at + length])
            at += length
        del buffer[:at]


def handled_frame(slot: int, handled: HandlingResult) -> bytes:
    """How a handling ended, for the parent: one that failed, or sent something."""
    if handled.failure is not None:
        return json_frame(FAILED, {"outcome": handled.outcome.value, **handled.failure.as_json()}, slot)
    return frame(DONE_WITH_SENDS, slot, 0, b"".join(sends_bytes(handled.sends)))


def read_handled(kind: int, content: bytes) -> HandlingResult:
    """The inverse of `handled_frame`, from a frame's kind and content."""
    if kind == DONE_WITH_SENDS:
        return HandlingResult(Outcome.RETURNED, None, tuple(read_sends(content)))
    details = json.loads(content)
    outcome = Outcome(details.pop("outcome"))
    return HandlingResult(outcome, FailureDetails(**details))


_LENGTHS = struct.Struct("<HI")


def sends_bytes(sends: tuple[tuple[str, bytes], ...]) -> Iterator[bytes]:
    for destination, encoded in sends:
        name = destination.encode()
        yield _LENGTHS.pack(len(name), len(encoded)) + name + encoded


def read_sends(content: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(content):
        name, size = _LENGTHS.unpack_from(content, at)
        at += _LENGTHS.size
        yield content[at : at + name].decode(), content[at + name : at + name + size]
        at += name + size


def read_problem(content: bytes) -> FailureDetails:
    return FailureDetails(**json.loads(content))


# -- questions of agents, and the run's replies --------------------------------------------------------------


_HEAD_LENGTH = struct.Struct("<I")


def question_frame(slot: int, number: int, question: Question) -> bytes:
    head = json.dumps([question.acknowledgement, question.action.value, question.seconds]).encode()
    content = _HEAD_LENGTH.pack(len(head)) + head + b"".join(sends_bytes(question.sends))
    return frame(ACKNOWLEDGE, slot, number, content)


def read_question(content: bytes) -> Question:
    end = _HEAD_LENGTH.size + _HEAD_LENGTH.unpack_from(content)[0]
    acknowledgement, action, seconds = json.loads(content[_HEAD_LENGTH.size : end])
    return Question(acknowledgement, Action(action), seconds, tuple(read_sends(content[end:])))


def reply_frame(number: int, reply: Reply) -> bytes:
    return frame(ACKNOWLEDGED, 0, number, json.dumps(asdict(reply)).encode())


# -- what standalone agents send, and the broker's word ------------------------------------------------------


# Child to parent, and back. The number of a frame is the send's.
SEND, SENT = 30, 31


_NAME_LENGTH = struct.Struct("<H")


@dataclass(frozen=True, slots=True)
class SendReply:
    """`problem` is empty when the broker has the message on disk. `temporary`: it may work later."""

    problem: str = ""
    temporary: bool = False


def send_frame(number: int, destination: str, encoded: bytes) -> bytes:
    name = destination.encode()
    return frame(SEND, 0, number, _NAME_LENGTH.pack(len(name)) + name + encoded)


def read_send(content: bytes) -> tuple[str, bytes]:
    """Destination and encoded message."""
    at = _NAME_LENGTH.size + _NAME_LENGTH.unpack_from(content)[0]
    return content[_NAME_LENGTH.size : at].decode(), content[at:]


def answer_frame(number: int, answer: SendReply) -> bytes:
    return frame(SENT, 0, number, json.dumps(asdict(answer)).encode())


def read_answer(content: bytes) -> SendReply:
    return SendReply(**json.loads(content))
