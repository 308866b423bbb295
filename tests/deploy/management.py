"""A management client of the tests' own, so that the accounts are tried with nothing of ours in between."""

import json
import queue
from contextlib import suppress
from typing import Any, Self

import stomp

from tests.services import Account, ArtemisService

REPLIES = "MA.reply.tests-deploy"
ANSWER_SECONDS = 20


class _Frames(stomp.ConnectionListener):
    def __init__(self) -> None:
        self.received: queue.Queue[tuple[str, Any]] = queue.Queue()

    def on_message(self, frame: Any) -> None:
        self.received.put(("message", frame))

    def on_error(self, frame: Any) -> None:
        self.received.put(("error", frame))

    def on_receipt(self, frame: Any) -> None:
        self.received.put(("receipt", frame))


class StompClient:
    def __init__(self, broker: ArtemisService, account: Account) -> None:
        self.frames = _Frames()
        address = ("127.0.0.1", broker.ports.stomp)
        self.connection = stomp.Connection12([address], auto_content_length=False, reconnect_attempts_max=1)
        self.connection.set_listener("", self.frames)
        self.connection.connect(account.user, account.password, wait=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The broker hangs up after an ERROR, at any moment from then on.
        with suppress(OSError, stomp.exception.StompException):
            self.connection.disconnect()

    def next_frame(self) -> tuple[str, Any]:
        return self.frames.received.get(timeout=ANSWER_SECONDS)

    def send(self, address: str, body: str = "x", **headers: str) -> tuple[str, Any]:
        """The broker's answer: a receipt, or the error that says why not."""
        self.connection.send(
            address, body, headers={"destination-type": "MULTICAST", "receipt": "r", **headers}
        )
        return self.next_frame()

    def subscribe(self, address: str, **headers: str) -> tuple[str, Any]:
        self.connection.subscribe(address, id="1", ack="client", headers={"receipt": "s", **headers})
        return self.next_frame()


class Management(StompClient):
    def __init__(self, broker: ArtemisService, account: Account) -> None:
        super().__init__(broker, account)
        self.connection.subscribe(REPLIES, id="replies", ack="auto", headers={"subscription-type": "ANYCAST"})

    def call(self, resource: str, operation: str, *arguments: Any) -> tuple[bool, Any]:
        """Whether it was allowed and worked, and the answer or the reason."""
        return self._ask({"_AMQ_ResourceName": resource, "_AMQ_OperationName": operation}, arguments)

    def attribute(self, resource: str, name: str) -> tuple[bool, Any]:
        return self._ask({"_AMQ_ResourceName": resource, "_AMQ_Attribute": name}, ())

    def _ask(self, headers: dict[str, str], arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        self.connection.send(
            "activemq.management",
            json.dumps(list(arguments)),
            headers=headers | {"JMSReplyTo": REPLIES, "reply-to": REPLIES, "destination-type": "ANYCAST"},
            content_type="application/json",
        )
        kind, frame = self.next_frame()
        if kind == "error":
            return False, frame.headers.get("message", "")
        values = json.loads(frame.body) if frame.body else [None]
        return frame.headers["_AMQ_OperationSucceeded"] == "true", values[0]
