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
    "run.process_ended_early", _("the agent's process ended (%(how)s) before it was ready")
)
ENDED_BEFORE_IT_BEGAN = Kind(
    "run.ended_before_it_began", _("the agent's process ended before the agent had begun")
)
IMPORT_TOO_SLOW = Kind("run.import_too_slow", _("the agent takes longer than %(seconds)s s to import"))
NO_PROCESS = Kind("run.no_process", _("no process can be started: %(detail)s"))
HANDLING_SLOW = Kind("run.handling_slow", _("a handling has taken %(seconds)s s, of at most %(limit)s s"))
CRASHED = Kind("run.crashed", _("the run failed: %(type)s: %(text)s"))
ENDINGS_NOT_STORED = Kind("run.endings_not_stored", _("endings could not be stored"))
UNKNOWN_AGENT = Kind("run.unknown_agent", _("unknown agent %(agent)s; this server offers: %(offered)s"))
OTHER_KIND = Kind(
    "run.other_kind", _("agent %(agent)s is a %(kind)s agent here; the setting is for a %(wanted)s one")
)
NO_CONCURRENCY = Kind("run.no_concurrency", _("concurrency is below 1"))
WAITS_FOR_MA = Kind(
    "run.waits_for_ma",
    _("Waits for an answer of the MA: without one it must not run here, another server may."),
)
STARTED_AGAIN = Kind(
    "run.started_again", _("run_agent failed: %(type)s; it is started again after %(seconds)s s")
)

# -- why a KMA does not work as it should --
SPOOL_FULL = Kind(
    "spool.full", _("The spool is full: no more messages are taken until the MA has taken records.")
)
SPOOL_NOT_WRITTEN = Kind(
    "spool.not_written",
    _("The spool cannot be written (%(detail)s): no more messages are taken until it can."),
)
MODULE_NOT_IMPORTED = Kind(
    "kma.module_not_imported", _("module %(module)s cannot be imported: %(type)s: %(text)s")
)
MODULES_TOO_SLOW = Kind("kma.modules_too_slow", _("importing %(modules)s takes longer than %(seconds)s s"))
MODULES_ENDED_PROCESS = Kind(
    "kma.modules_ended_process", _("importing %(modules)s ended the process with code %(status)s")
)
NO_PROCESS_FOR_MODULES = Kind(
    "kma.no_process_for_modules", _("no process can be started to look at the agents: %(detail)s")
)
REPORTER_FAILED = Kind("kma.reporter_failed", _("nothing is reported: %(type)s: %(text)s"))
RECORDS_NOT_TAKEN = Kind("kma.records_not_taken", _("records are not taken: %(detail)s"))
TOKEN_REFUSED = Kind("kma.token_refused", _("records are not taken, the token is refused: %(detail)s"))
BATCH_NOT_TAKEN = Kind("kma.batch_not_taken", _("%(n)s records at once are not taken: %(detail)s"))
RECORD_NOT_TAKEN = Kind("kma.record_not_taken", _("record %(number)s is not taken: %(detail)s"))
RECORDS_GONE = Kind("kma.records_gone", _("the MA asks for records that are not here any more"))
STORED_IN_PART = Kind("kma.stored_in_part", _("the MA has stored only a part of a batch"))
LINK_TOO_SLOW = Kind(
    "kma.link_too_slow",
    _(
        "%(n)s records do not reach the MA in the time that it gives one: the link to it is too slow. "
        "They wait in the spool and are tried again after the others."
    ),
)
RECORDS_REFUSED = Kind(
    "kma.records_refused", _("%(n)s records were refused by the MA; they are kept in %(path)s")
)
DESIRED_NOT_STORED = Kind(
    "kma.desired_not_stored", _("What the MA wants cannot be stored in %(path)s, nor begin: %(detail)s")
)

# -- how a delivery ended that waited for an answer --
NO_ANSWER = Kind("delivery.no_answer", _("No answer came within %(seconds)s s."))
ANSWERED_ROLLBACK = Kind("delivery.answered_rollback", _("The delivery was answered ROLLBACK."))
HANDLING_FAILED = Kind("delivery.handling_failed", _("Its handling failed."))
RELEASED = Kind("delivery.released", _("It was released to the broker: the run stops."))
CONNECTION_LOST = Kind(
    "delivery.connection_lost", _("The connection was lost while it waited; the message comes back.")
)
IN_DOUBT = Kind(
    "delivery.in_doubt",
    _("The connection was lost while it was being committed: it is committed, or the message comes back."),
)
RUN_ENDED = Kind("delivery.run_ended", _("The run ended while it waited; the message comes back."))
CONTAINER_ENDED = Kind(
    "delivery.container_ended", _("The container ended while it waited; the message comes back.")
)
CONTAINER_ENDED_IN_DOUBT = Kind(
    "delivery.container_ended_in_doubt",
    _("The container ended while it was being committed: it is committed, or the message comes back."),
)
NOT_OPEN = Kind(
    "delivery.not_open",
    _("It is not open on this server: it was answered within its handling, or went with its connection."),
)
NOT_COMMITTED = Kind("delivery.not_committed", _("It could not be committed: %(detail)s"))
SENDS_NOT_TAKEN = Kind("delivery.sends_not_taken", _("What its handling sent was not taken: %(detail)s"))

SENTENCES = {kind.code: kind.sentence for kind in list(globals().values()) if isinstance(kind, Kind)}
