"""Every reason that rows of this app keep. `grep` for a code finds where it is given."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from agents.models import ActivationState, Ending, Trigger, Withheld
from console.reasons import Reason, ReasonKind
from contract.reasons import SENTENCES

# -- why an activation does not run yet --
NO_SERVER = ReasonKind("activation.no_server", _("The pool “%(pool)s” has no server."))
NONE_ALIVE = ReasonKind("activation.none_alive", _("No server of the pool “%(pool)s” is alive."))
NONE_OFFERS = ReasonKind(
    "activation.none_offers", _("No live server of the pool “%(pool)s” offers the agent “%(agent)s”.")
)
ALL_CORDONED = ReasonKind(
    "activation.all_cordoned",
    _("Every live server of the pool “%(pool)s” that offers the agent “%(agent)s” is cordoned or draining."),
)
NONE_OBEYS = ReasonKind(
    "activation.none_obeys",
    _("Every live server of the pool “%(pool)s” is heard but does not take what it is sent."),
)
RUN_BEFORE_STOPS = ReasonKind("activation.run_before_stops", _("The run before is still stopping."))
NOT_PLANNED = ReasonKind("activation.not_planned", _("It cannot be planned; the log of the site says why."))

# -- how an activation began and ended --
STARTED_BY = ReasonKind("activation.started_by", "%(trigger)s", trigger=Trigger)
ENDED = ReasonKind("activation.ended", "%(ending)s", ending=Ending)
AGENT_FAILED = ReasonKind("activation.agent_failed", _("the agent failed"))
RUN_FAILED = ReasonKind("activation.run_failed", _("a run failed"))
MESSAGES_FAILED = ReasonKind(
    "activation.messages_failed", _("messages that failed and were not handled well later: %(n)s")
)
LATE_RECORDS = ReasonKind("activation.late_records", _("records that came after the end"))
NOT_ALLOWED_ANY_MORE = ReasonKind(
    "activation.not_allowed_any_more", _("its pool does not allow its agent any more")
)

# -- runs --
EPOCH = ReasonKind("run.epoch", _("epoch %(n)s"))
RESUMED = ReasonKind("run.resumed", _("resumed, epoch %(n)s"))
SERVER_SILENT = ReasonKind("run.server_silent", _("the server is silent"))
WITHDRAWN = ReasonKind("run.withdrawn", _("the server drains, left the pool, or no longer offers the agent"))
INTERRUPTED = ReasonKind(
    "run.interrupted", _("epoch %(n)s: in a row %(same)s × %(type)s, of any type %(any)s")
)

# -- the breaker --
SAME_TYPE_IN_A_ROW = ReasonKind(
    "breaker.same_type", _("by the breaker: failures of one type in a row (%(type)s) on %(servers)s")
)
FAILURES_IN_A_ROW = ReasonKind(
    "breaker.any_type", _("by the breaker: failures in a row, last %(type)s, on %(servers)s")
)
TRIAL_FAILED = ReasonKind(
    "breaker.trial", _("by the breaker: the message tried first failed (%(type)s) on %(servers)s")
)

# -- what people do --
BY_COMMAND = ReasonKind("command_line", _("from the command line"))
BY_COMMAND_BECAUSE = ReasonKind("command_line.because", _("%(why)s (from the command line)"))
FROM_FILE = ReasonKind("from_file", _("applied from a file"))
UNTIL = ReasonKind("until", _("%(why)s (until %(until)s)"))
TIME_OVER = ReasonKind("time_over", _("its time was over"))

# -- groups --
OF_MEMBER = ReasonKind("group.of_member", _("%(key)s: %(why)s"))
MEMBER_ENDED = ReasonKind(
    "group.member_ended", _("%(key)s did not finish well: %(state)s"), state=ActivationState
)
MEMBER_GONE = ReasonKind("group.member_gone", _("%(key)s is not there any more"))
MEMBER_REFUSED = ReasonKind("group.member_refused", _("%(key)s could not be started: %(why)s"))

# -- windows --
LATER_ONE_STARTED = ReasonKind("window.later_one_started", _("a later window was due at the same time"))
MISSED = ReasonKind("window.missed", _("missed: nobody could start it then"))
MISSED_MANY = ReasonKind(
    "window.missed_many",
    _("missed: %(count)s windows from %(first)s to %(last)s, nobody could start them then"),
)
STARTED_LATE = ReasonKind("window.started_late", _("started late, once for all missed windows"))

# -- why nothing can be started now --
DISABLED = ReasonKind("start.disabled", _("The setting is disabled."))
RUNS_ALWAYS = ReasonKind("start.runs_always", _("It runs from enabling to disabling, as messages come."))
NOT_ENDED = ReasonKind("start.not_ended", _("The activation before has not ended yet."))
IN_GROUP = ReasonKind(
    "start.in_group", _("It belongs to the group “%(name)s”, which starts its members in order.")
)
NOT_SENT = ReasonKind("start.not_sent", _("It cannot be sent to its servers: %(why)s."), why=Withheld)
AGENT_NOT_ALLOWED = ReasonKind(
    "start.agent_not_allowed", _("The pool “%(pool)s” does not allow the agent “%(agent)s”.")
)
GROUP_DISABLED = ReasonKind("start.group_disabled", _("The group “%(name)s” is disabled."))
GROUP_RUNS = ReasonKind(
    "start.group_runs",
    _("The activation of the group before still runs, with member %(step)s of %(count)s."),
)
MEMBER_RUNS = ReasonKind("start.member_runs", _("Its member “%(key)s” still runs."))

# -- why a setting that was to be removed stays --
SUBSCRIPTION_HOLDS = ReasonKind(
    "removal.subscription_holds", _("Its subscription %(queue)s holds messages on the broker: %(n)s.")
)
DEAD_LETTERS_HELD = ReasonKind(
    "removal.dead_letters_held", _("Its dead-letter queue %(queue)s holds messages on the broker: %(n)s.")
)
HELD_BACK = ReasonKind("removal.held_back", _("Messages of it are held back in %(queue)s: %(n)s."))
GROUPED_MEANWHILE = ReasonKind("removal.grouped_meanwhile", _("It was put into a group at the same time."))
QUEUES_KEPT = ReasonKind(
    "removal.queues_kept", _("The broker did not let its queues be removed: %(problem)s")
)
BROKER_AWAY = ReasonKind(
    "removal.broker_away",
    _("The broker does not answer, and what its queues hold is not known: %(problem)s"),
)

# -- what KMAs report --
for _code, _sentence in SENTENCES.items():
    ReasonKind(_code, _(_sentence))

# -- how a delivery ended that waited for an answer: what is known here --
DELIVERED_AGAIN = ReasonKind(
    "delivery.delivered_again", _("Its server is not heard, and the message was delivered again.")
)
AGENT_ON = ReasonKind("delivery.agent_on", _("agent on %(server)s"))

# -- the message that blocks an ordered subscription --
BLOCKED = ReasonKind(
    "run.blocked",
    _(
        "blocked by the message %(key)s after attempt %(attempt)s; it is tried again when somebody asks "
        "for it"
    ),
)
BLOCKED_FOR = ReasonKind(
    "run.blocked_for",
    _("blocked by the message %(key)s after attempt %(attempt)s; it is tried again every %(seconds)s s"),
)


def problems_of(run: Any) -> list[Reason]:
    """Returns what keeps a run from its work, what blocks it among that."""
    blocked = run.blocked
    if blocked is None:
        return list(run.problems)
    key, attempt, seconds = blocked["key"], blocked["attempt"], blocked["retry_seconds"]
    if seconds is None:
        return [*run.problems, BLOCKED(key=key, attempt=attempt)]
    return [*run.problems, BLOCKED_FOR(key=key, attempt=attempt, seconds=seconds)]
