"""What agent authors import.

    from kma.agent import Agent, Context, InvalidMessage, Message, TemporaryUnavailable, agent

    @agent("shop.orders", version="1")
    class Orders(Agent):
        def run_agent(self, message: Message, context: Context) -> None:
            order = message.json()

Returning is success. `TemporaryUnavailable` and any other exception bring the message back later,
`InvalidMessage` sends it to the dead letters at once. An agent with `run_agent(self, context)` is standalone:
it is run by itself, not per message. docs/agents.md takes a newcomer through both.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from contract.acknowledgements import END_OF, parse_action
from kma import registry

if TYPE_CHECKING:
    from kma.job import Job
    from kma.received import Received

Kind = Literal["text", "bytes", "map", "stream", "object", "other"]
T = TypeVar("T")


class TemporaryUnavailable(RuntimeError):
    """The agent knows that what it needs is away for now. Costs an attempt, does not count against the
    setting."""


class InvalidMessage(ValueError):
    """The message can never be handled. It goes to the dead letters at once, whatever attempts it has
    left."""


class AgentStopped(BaseException):
    """The agent stops because it was asked to (`context.stopping`). The message is given back, no attempt is
    spent.

    A standalone agent that is stopped finds it raised where it is, once: let it pass, or clean up and raise
    it again.
    """


class SendRefused(RuntimeError):
    """The broker does not take what a standalone agent sends: no such address, or no right to send there."""


class AcknowledgementRefused(RuntimeError):
    """A delivery could not be answered so: it was answered otherwise, expired, went with its connection, or
    there is none of this id. `state` is how it ended (`committed`, `rolled_back`, `expired`, `lost`), empty
    if nobody knows."""

    def __init__(self, reason: str, state: str = "") -> None:
        super().__init__(reason)
        self.state = state


class Agent:
    """One object handles many messages, one at a time; after an exception a new object goes on."""

    def run_agent(self, message: "Message", context: "Context") -> None:
        raise NotImplementedError(f"{type(self).__qualname__} has no run_agent")


class StandaloneAgent:
    """Runs by itself, once per activation: returning is the end of the run, raising its failure."""

    def run_agent(self, context: "Context") -> None:
        raise NotImplementedError(f"{type(self).__qualname__} has no run_agent")


def agent(name: str, *, version: str = "", summary: str = "") -> Callable[[T], T]:
    """Registers a class with `run_agent(self, message, context)`, or a function `(message, context)`, under
    `name`; without `message` it is a standalone agent.

    `summary` is the first line of the docstring unless given. Name, version and summary are shown in the MA.
    """

    def decorate(target: T) -> T:
        registry.register(name, version, summary, target)
        return target

    return decorate


class Message:
    """A message as an agent sees it. Values are natural Python values; what the producer did not set is
    empty."""

    __slots__ = ("_received", "attempt")

    def __init__(self, received: "Received", attempt: int) -> None:
        self._received = received
        self.attempt = attempt

    @property
    def redelivered(self) -> bool:
        """True is certain: an attempt was made before. False is not: its start may have been lost with a
        server."""
        return self.attempt > 1

    @property
    def id(self) -> str:
        """The producer's message id (JMSMessageID), as text."""
        return self._received.id

    @property
    def key(self) -> str:
        """The message key: the same on every delivery and in every page of the MA."""
        return self._received.key

    @property
    def body(self) -> Any:
        """str for text, bytes for bytes and object, dict for map, list for stream, any value for other."""
        return self._received.body

    @property
    def kind(self) -> Kind:
        """An `object` is a serialised Java object: bytes that are never deserialised."""
        return self._received.kind

    @property
    def truncated(self) -> bool:
        """The broker handed over only the head of the body: a Core client had compressed it. `declared_size`
        says how long it is; a replay moves the message whole."""
        return self._received.missing_bytes > 0

    @property
    def declared_size(self) -> int | None:
        """Bytes of the body by its sender's word, where he compressed it; None: he did not."""
        return self._received.declared_size

    @property
    def properties(self) -> Mapping[str, Any]:
        return self._received.properties

    @property
    def correlation_id(self) -> str:
        return self._received.correlation_id

    @property
    def reply_to(self) -> str:
        return self._received.reply_to

    @property
    def content_type(self) -> str:
        return self._received.content_type

    @property
    def destination(self) -> str:
        """The address that the setting's subscription belongs to."""
        return self._received.destination

    def json(self) -> Any:
        """The body as JSON (text, or bytes in UTF-8). Raises InvalidMessage when it is none."""
        if not isinstance(self.body, (str, bytes)):
            raise InvalidMessage(f"the body is no JSON text but {self.kind}")
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise InvalidMessage(f"the body is no JSON: {error}") from error

    def __repr__(self) -> str:
        return f"<Message {self.key} attempt {self.attempt}>"


class Context:
    """What an agent may do besides computing. One object per message, or per run of a standalone agent."""

    __slots__ = ("_acknowledgement", "_job", "_log", "_message", "_sends")

    def __init__(self, job: "Job", message: Message | None = None, acknowledgement: str = "") -> None:
        self._job = job
        self._message = message
        self._acknowledgement = acknowledgement
        self._log: Any = None
        self._sends: list[tuple[str, bytes]] = []

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the launch setting."""
        return self._job.parameters

    @property
    def setting(self) -> str:
        return self._job.setting

    @property
    def activation(self) -> str:
        return self._job.activation

    @property
    def server(self) -> str:
        return self._job.server

    @property
    def stopping(self) -> bool:
        """True once the run is asked to stop. A long handling may look and raise AgentStopped; a standalone
        agent has it raised in its main thread anyway, and may look here to end at a better place."""
        return self._job.stopping()

    @property
    def log(self) -> Any:
        """A structlog logger (JSON lines) bound with activation, server and message key. Log no bodies."""
        if self._log is None:
            from kma.logs import (
                agent_logger,
            )  # structlog takes longer to import than all else: only for who logs

            self._log = agent_logger(self._job, self._message.key if self._message is not None else "")
        return self._log

    @property
    def acknowledgement_id(self) -> str:
        """In the mode CLIENT the name by which this delivery is answered, here or by anybody whom it is given
        to. Empty in the other modes."""
        return self._acknowledgement

    def acknowledge(self, acknowledgement_id: str, action: str, *, timeout: float = 60.0) -> str:
        """Answers a delivery of the mode CLIENT: this one, or any whose id somebody passed on, also of
        another server. Answers how it ended: `committed` or `rolled_back`, once the broker has confirmed it.

        `action` is COMMIT (or JBXCommit) or ROLLBACK (or JBXRollback), in any letter case. Committing this
        delivery sends what was sent so far within the same transaction; rolling it back drops that. Raises
        ValueError for another action, AcknowledgementRefused when it ended otherwise, and
        TemporaryUnavailable when there is no word of it after `timeout` seconds: then asking the same again
        is safe, here or elsewhere.
        """
        from kma.asking import Question

        chosen = parse_action(action)
        if self._job.ask is None:
            raise RuntimeError("a standalone agent answers through the MA's REST interface")
        own = acknowledgement_id == self._acknowledgement != ""
        sends = tuple(self._sends) if own else ()
        reply = self._job.ask(Question(acknowledgement_id, chosen, timeout, sends))
        if reply.taken and own:
            del self._sends[: len(sends)]
        if reply.temporary:
            raise TemporaryUnavailable(reply.reason)
        if reply.state != END_OF[chosen].value:
            raise AcknowledgementRefused(reply.reason, reply.state)
        return reply.state

    def send(
        self,
        destination: str,
        body: str | bytes | Mapping[str, Any] | list[Any] | None,
        properties: Mapping[str, Any] | None = None,
        *,
        message_id: str = "",
        correlation_id: str = "",
        reply_to: str = "",
        content_type: str = "",
        priority: int = 4,
        ttl: timedelta | None = None,
        durable: bool = True,
        created_at: datetime | None = None,
        acknowledgement_timeout: int | None = None,
    ) -> None:
        """Sends when `run_agent` has returned: all that was sent and the acceptance of the message are one
        transaction. Nothing is sent when it raises.

        In the mode CLIENT a commit from within the handling takes what was sent before it into its
        transaction; the rest is on disk at the broker before the delivery waits for its answer.

        A standalone agent has no message and no transaction: each message is on disk at the broker when
        `send` returns, whatever happens to the run later; it raises TemporaryUnavailable while the broker is
        away (the message may have been taken), SendRefused when the broker will not have it.

        str becomes a text, bytes a bytes, a mapping a map, a list a stream message. Persistent unless
        `durable` is False. `acknowledgement_timeout`: seconds, more than 0, that a setting of the mode CLIENT
        which gets the message waits for its answer (the property of that name, as this setting calls it).
        Raises TypeError or ValueError for what AMQP cannot carry.
        """
        from kma.outgoing import encoded_message, seconds_property

        more = {}
        if acknowledgement_timeout is not None:
            more[self._job.acknowledgement_property] = seconds_property(acknowledgement_timeout)
        encoded = encoded_message(
            body,
            {**(properties or {}), **more},
            message_id=message_id,
            correlation_id=correlation_id,
            reply_to=reply_to,
            content_type=content_type,
            priority=priority,
            ttl=ttl,
            durable=durable,
            created_at=created_at,
        )
        self._out(_address(destination), encoded)

    def send_json(
        self, destination: str, value: Any, properties: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        """Sends `value` as JSON in a text message; `more` as for `send`."""
        more.setdefault("content_type", "application/json")
        self.send(destination, json.dumps(value, ensure_ascii=False), properties, **more)

    def _out(self, destination: str, encoded: bytes) -> None:
        self._sends.append((destination, encoded))


def _address(destination: str) -> str:
    if not destination or not destination.isprintable() or len(destination) > 500:
        raise ValueError(f"{destination!r} is no destination")
    return destination
