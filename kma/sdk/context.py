"""What an agent is, and what it may do besides computing."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from contract.acknowledgements import END_OF, parse_action
from exposition.trace import passed_on
from kma.sdk.encoding import encoded_message, seconds_property
from kma.sdk.errors import AcknowledgementRefused, TemporaryUnavailable
from kma.sdk.job import JobSpec, Question
from kma.sdk.message import Message


class Agent:
    """One object handles many messages, one at a time; after an exception a new object goes on."""

    def run_agent(self, message: "Message", context: "Context") -> None:
        raise NotImplementedError(f"{type(self).__qualname__} has no run_agent")


class StandaloneAgent:
    """Runs by itself, once per activation: returning is the end of the run, raising its failure."""

    def run_agent(self, context: "Context") -> None:
        raise NotImplementedError(f"{type(self).__qualname__} has no run_agent")


class Context:
    """What an agent may do besides computing. One object per message, or per run of a standalone agent."""

    __slots__ = ("_acknowledgement", "_job", "_log", "_message", "_sends")

    def __init__(self, job: JobSpec, message: Message | None = None, acknowledgement: str = "") -> None:
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
            from kma.logs import agent_logger  # structlog takes longer to import than all else

            job = self._job
            self._log = agent_logger(
                job.log_level,
                agent=job.agent,
                setting=job.setting,
                activation=job.activation,
                server=job.server,
                message_key=self._message.key if self._message is not None else "",
            )
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
        chosen = parse_action(action)
        if self._job.ask is None:
            raise RuntimeError("a standalone agent must answer through the REST interface of the MA")
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
        The properties `traceparent` and `tracestate` of the message that is handled are passed on, unless
        `properties` has them. Raises TypeError or ValueError for what AMQP cannot carry.
        """
        more = {}
        if acknowledgement_timeout is not None:
            more[self._job.acknowledgement_property] = seconds_property(acknowledgement_timeout)
        given = self._message.properties if self._message is not None else {}
        encoded = encoded_message(
            body,
            {**passed_on(given), **(properties or {}), **more},
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
        raise ValueError(f"{destination!r} is not a destination")
    return destination


class StandaloneContext(Context):
    """`publish(destination, encoded)` returns when the broker has the message."""

    __slots__ = ("_publish",)

    def __init__(self, job: JobSpec, publish: Callable[[str, bytes], None]) -> None:
        super().__init__(job)
        self._publish = publish

    def _out(self, destination: str, encoded: bytes) -> None:
        self._publish(destination, encoded)
