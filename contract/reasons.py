"""Why something is so, as a KMA reports it: a code with parameters. The site says it in the reader's language
(`agents.reasons`); these English sentences are for agents, events and logs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reason:
    """`str()` says it in English. A code without a sentence, as of another version, shows itself."""

    code: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        sentence = SENTENCES.get(self.code, f"{self.code} {dict(self.params)}".replace("%", "%%"))
        return sentence % {name: said(value) for name, value in self.params.items()}


LONGEST = 1000  # characters of a parameter
LEGACY = "legacy.text"  # of a side that speaks version 3: its sentence is the parameter `text`


class Kind:
    """Declares a code with its sentence; called with its parameters it makes the reason, which keeps LONGEST
    characters of each."""

    def __init__(self, code: str, sentence: str) -> None:
        self.code, self.sentence = code, sentence

    def __call__(self, **params: Any) -> Reason:
        short = {name: value[:LONGEST] if isinstance(value, str) else value for name, value in params.items()}
        return Reason(self.code, short)


def _(sentence: str) -> str:
    """Marks it for the translations of the site."""
    return sentence


def said(value: Any) -> str:
    """A parameter within its sentence."""
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- why a run does not work as it should --
BROKER_LOST = Kind("run.broker_lost", _("no connection to the broker: %(detail)s"))
AGENT_RAISED_AT_START = Kind("run.agent_raised_at_start", "%(type)s: %(text)s")
PROCESS_ENDED_EARLY = Kind(
    "run.process_ended_early", _("the agent process ended (%(how)s) before it was ready")
)
ENDED_BEFORE_IT_BEGAN = Kind(
    "run.ended_before_it_began", _("the agent process ended before the agent started")
)
IMPORT_TOO_SLOW = Kind("run.import_too_slow", _("agent import did not finish within %(seconds)s s"))
NO_PROCESS = Kind("run.no_process", _("cannot start a process: %(detail)s"))
HANDLING_SLOW = Kind("run.handling_slow", _("processing has taken %(seconds)s s; the limit is %(limit)s s"))
CRASHED = Kind("run.crashed", _("the instance failed: %(type)s: %(text)s"))
ENDINGS_NOT_STORED = Kind("run.endings_not_stored", _("processing results could not be stored"))
UNKNOWN_AGENT = Kind("run.unknown_agent", _("unknown agent %(agent)s; this server offers: %(offered)s"))
OTHER_KIND = Kind(
    "run.other_kind",
    _("the kind of agent %(agent)s on this server is %(kind)s; the setting requires %(wanted)s"),
)
NO_CONCURRENCY = Kind("run.no_concurrency", _("concurrency is less than 1"))
WAITS_FOR_MA = Kind(
    "run.waits_for_ma",
    _(
        "Waiting for a reply from the MA. Until it arrives, the setting cannot run here: "
        "another server may be running it."
    ),
)
STARTED_AGAIN = Kind("run.started_again", _("run_agent failed: %(type)s; it restarts in %(seconds)s s"))

# -- why a KMA does not work as it should --
SPOOL_FULL = Kind(
    "spool.full", _("The spool is full: the server takes no more messages until the MA accepts records.")
)
SPOOL_NOT_WRITTEN = Kind(
    "spool.not_written",
    _(
        "Cannot write to the spool: %(detail)s. The server takes no new messages until the "
        "spool is writable again."
    ),
)
MODULE_NOT_IMPORTED = Kind(
    "kma.module_not_imported", _("cannot import module %(module)s: %(type)s: %(text)s")
)
MODULES_TOO_SLOW = Kind(
    "kma.modules_too_slow", _("import of %(modules)s did not finish within %(seconds)s s")
)
MODULES_ENDED_PROCESS = Kind(
    "kma.modules_ended_process", _("the process exited with code %(status)s while importing %(modules)s")
)
NO_PROCESS_FOR_MODULES = Kind(
    "kma.no_process_for_modules", _("cannot start a process to list the agents: %(detail)s")
)
REPORTER_FAILED = Kind("kma.reporter_failed", _("reporting failed: %(type)s: %(text)s"))
RECORDS_NOT_TAKEN = Kind("kma.records_not_taken", _("the MA does not accept records: %(detail)s"))
TOKEN_REFUSED = Kind("kma.token_refused", _("the MA rejects the token and accepts no records: %(detail)s"))
BATCH_NOT_TAKEN = Kind(
    "kma.batch_not_taken", _("the MA does not accept a batch of %(n)s records: %(detail)s")
)
RECORD_NOT_TAKEN = Kind("kma.record_not_taken", _("the MA does not accept record %(number)s: %(detail)s"))
RECORDS_GONE = Kind("kma.records_gone", _("the MA requests records that this server no longer has"))
STORED_IN_PART = Kind("kma.stored_in_part", _("the MA stored only part of a batch"))
LINK_TOO_SLOW = Kind(
    "kma.link_too_slow",
    _(
        "Some records (%(n)s) do not reach the MA in time: the connection is too slow. They "
        "stay in the spool and will be sent again after the other records."
    ),
)
RECORDS_REFUSED = Kind(
    "kma.records_refused", _("records refused by the MA: %(n)s; they are kept in %(path)s")
)
DESIRED_NOT_STORED = Kind(
    "kma.desired_not_stored",
    _("The desired state from the MA cannot be stored in %(path)s and does not take effect: %(detail)s"),
)

# -- how a delivery ended that waited for an answer --
NO_ANSWER = Kind("delivery.no_answer", _("No acknowledgement arrived within %(seconds)s s."))
ANSWERED_ROLLBACK = Kind(
    "delivery.answered_rollback", _("Acknowledged with ROLLBACK: the delivery was rolled back.")
)
HANDLING_FAILED = Kind("delivery.handling_failed", _("Message processing failed."))
RELEASED = Kind(
    "delivery.released", _("The instance is stopping, and the message was returned to the broker.")
)
CONNECTION_LOST = Kind(
    "delivery.connection_lost",
    _("The connection was lost before acknowledgement; the broker will redeliver the message."),
)
IN_DOUBT = Kind(
    "delivery.in_doubt",
    _(
        "The connection was lost during commit: either the message has been committed, or the "
        "broker will redeliver it."
    ),
)
RUN_ENDED = Kind(
    "delivery.run_ended",
    _("The instance ended before acknowledgement; the broker will redeliver the message."),
)
CONTAINER_ENDED = Kind(
    "delivery.container_ended",
    _("The container ended before acknowledgement; the broker will redeliver the message."),
)
CONTAINER_ENDED_IN_DOUBT = Kind(
    "delivery.container_ended_in_doubt",
    _(
        "The container ended during commit: either the message was committed, or the broker "
        "will redeliver it."
    ),
)
NOT_OPEN = Kind(
    "delivery.not_open",
    _(
        "The delivery is not open on this server: it was acknowledged during processing, or "
        "the connection was lost."
    ),
)
NOT_COMMITTED = Kind("delivery.not_committed", _("Commit failed: %(detail)s"))
SENDS_NOT_TAKEN = Kind(
    "delivery.sends_not_taken", _("The broker did not accept messages sent during processing: %(detail)s")
)

SENTENCES = {kind.code: kind.sentence for kind in list(globals().values()) if isinstance(kind, Kind)}
