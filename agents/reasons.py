"""Every reason that rows of this app keep. `grep` for a code finds where it is given."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from agents.models import ActivationState, Ending, Trigger, Withheld
from console.reasons import Reason, ReasonKind
from contract.reasons import SENTENCES

# -- why an activation does not run yet --
NO_SERVER = ReasonKind("activation.no_server", _("The pool “%(pool)s” has no servers."))
NONE_ALIVE = ReasonKind("activation.none_alive", _("No server in the pool “%(pool)s” is online."))
NONE_OFFERS = ReasonKind(
    "activation.none_offers", _("No online server in the pool “%(pool)s” has the agent “%(agent)s”.")
)
ALL_CORDONED = ReasonKind(
    "activation.all_cordoned",
    _("Every online server in the pool “%(pool)s” that has the agent “%(agent)s” is cordoned or draining."),
)
NONE_OBEYS = ReasonKind(
    "activation.none_obeys",
    _("No online server in the pool “%(pool)s” is applying the desired state."),
)
STOPPED_THERE = ReasonKind(
    "activation.stopped_there",
    _(
        "The setting is stopped on every online server in the pool “%(pool)s” that offers the "
        "agent “%(agent)s”. Start it again on one of these servers."
    ),
)
RUN_BEFORE_STOPS = ReasonKind("activation.run_before_stops", _("The previous instance is still stopping."))
NOT_PLANNED = ReasonKind(
    "activation.not_planned",
    _("The activation could not be assigned to servers; the site log shows the cause."),
)

# -- how an activation began and ended --
STARTED_BY = ReasonKind("activation.started_by", "%(trigger)s", trigger=Trigger)
ENDED = ReasonKind("activation.ended", "%(ending)s", ending=Ending)
AGENT_FAILED = ReasonKind("activation.agent_failed", _("the agent failed"))
RUN_FAILED = ReasonKind("activation.run_failed", _("an instance failed"))
MESSAGES_FAILED = ReasonKind(
    "activation.messages_failed", _("messages never processed successfully after a failure: %(n)s")
)
LATE_RECORDS = ReasonKind("activation.late_records", _("records arrived after the activation ended"))
NOT_ALLOWED_ANY_MORE = ReasonKind("activation.not_allowed_any_more", _("the pool no longer allows the agent"))

# -- runs --
EPOCH = ReasonKind("run.epoch", _("start %(n)s"))
RESUMED = ReasonKind("run.resumed", _("resumed, start %(n)s"))
SERVER_SILENT = ReasonKind("run.server_silent", _("the server is offline"))
WITHDRAWN = ReasonKind(
    "run.withdrawn", _("the server is draining, has left the pool, or no longer has the agent")
)
STOPPED_HERE = ReasonKind("run.stopped_here", _("stopped on this server"))
INTERRUPTED = ReasonKind(
    "run.interrupted", _("start %(n)s, consecutive failures: %(same)s of type %(type)s, %(any)s of any type")
)

# -- the breaker --
SAME_TYPE_IN_A_ROW = ReasonKind(
    "breaker.same_type", _("breaker tripped: consecutive failures of one type (%(type)s) on %(servers)s")
)
FAILURES_IN_A_ROW = ReasonKind(
    "breaker.any_type", _("breaker tripped: consecutive failures on %(servers)s, last failure: %(type)s")
)
TRIAL_FAILED = ReasonKind(
    "breaker.trial", _("breaker tripped: the trial message failed (%(type)s) on %(servers)s")
)

# -- what people do --
BY_COMMAND = ReasonKind("command_line", _("from the command line"))
BY_COMMAND_BECAUSE = ReasonKind("command_line.because", _("%(why)s (from the command line)"))
FROM_FILE = ReasonKind("from_file", _("applied from a file"))
UNTIL = ReasonKind("until", _("%(why)s (until %(until)s)"))
TIME_OVER = ReasonKind("time_over", _("the specified period expired"))

# -- groups --
OF_MEMBER = ReasonKind("group.of_member", _("%(key)s: %(why)s"))
MEMBER_ENDED = ReasonKind(
    "group.member_ended", _("%(key)s did not succeed: %(state)s"), state=ActivationState
)
MEMBER_GONE = ReasonKind("group.member_gone", _("%(key)s no longer exists"))
MEMBER_REFUSED = ReasonKind("group.member_refused", _("%(key)s could not be started: %(why)s"))

# -- windows --
LATER_ONE_STARTED = ReasonKind("window.later_one_started", _("a later scheduled run started instead"))
MISSED = ReasonKind("window.missed", _("missed: the scheduler was unavailable"))
MISSED_MANY = ReasonKind(
    "window.missed_many",
    _("missed runs: %(count)s (%(first)s to %(last)s); the scheduler was unavailable"),
)
STARTED_LATE = ReasonKind("window.started_late", _("started late in place of all missed runs"))
HELD_MANY = ReasonKind("window.held_many", _("held runs: %(count)s (%(first)s to %(last)s). %(why)s"))
STARTED_AFTER_FREEZE = ReasonKind(
    "window.started_after_freeze", _("started after the freeze in place of all held runs")
)

# -- why nothing can be started now --
DISABLED = ReasonKind("start.disabled", _("The setting is disabled."))
RUNS_ALWAYS = ReasonKind("start.runs_always", _("The setting runs continuously while it is enabled."))
NOT_ENDED = ReasonKind("start.not_ended", _("The previous activation has not ended yet."))
IN_GROUP = ReasonKind(
    "start.in_group", _("The setting belongs to the group “%(name)s”, which starts its members in order.")
)
NOT_SENT = ReasonKind(
    "start.not_sent", _("The setting cannot be sent to its servers: %(why)s."), why=Withheld
)
AGENT_NOT_ALLOWED = ReasonKind(
    "start.agent_not_allowed", _("The pool “%(pool)s” does not allow the agent “%(agent)s”.")
)
GROUP_DISABLED = ReasonKind("start.group_disabled", _("The group “%(name)s” is disabled."))
GROUP_RUNS = ReasonKind(
    "start.group_runs",
    _("The previous group run is still in progress: member %(step)s of %(count)s."),
)
MEMBER_RUNS = ReasonKind("start.member_runs", _("The group member “%(key)s” is still running."))
FROZEN = ReasonKind(
    "start.frozen", _("Nothing new starts: %(by)s froze the whole installation. Reason: %(why)s")
)
FROZEN_POOL = ReasonKind(
    "start.frozen_pool", _("Nothing new starts: %(by)s froze the pool “%(pool)s”. Reason: %(why)s")
)
MAINTENANCE = ReasonKind(
    "start.maintenance",
    _("Nothing new starts: a maintenance window for the whole installation is open. Reason: %(why)s"),
)
MAINTENANCE_POOL = ReasonKind(
    "start.maintenance_pool",
    _("Nothing new starts: a maintenance window for the pool “%(pool)s” is open. Reason: %(why)s"),
)

# -- why a setting that was to be removed stays --
SUBSCRIPTION_HOLDS = ReasonKind(
    "removal.subscription_holds",
    _("The setting cannot be removed: its subscription still has messages on the broker (%(queue)s: %(n)s)."),
)
DEAD_LETTERS_HELD = ReasonKind(
    "removal.dead_letters_held",
    _(
        "The setting cannot be removed: its dead-letter queue still has messages on the "
        "broker (%(queue)s: %(n)s)."
    ),
)
HELD_BACK = ReasonKind(
    "removal.held_back",
    _("The setting cannot be removed: %(queue)s contains messages on hold (%(n)s). Release them first."),
)
GROUPED_MEANWHILE = ReasonKind(
    "removal.grouped_meanwhile",
    _(
        "The setting cannot be removed: someone added it to a group in the meantime. Remove "
        "it from the group and try again."
    ),
)
QUEUES_KEPT = ReasonKind(
    "removal.queues_kept",
    _("The setting cannot be removed because the broker refused to delete its queues: %(problem)s"),
)
BROKER_AWAY = ReasonKind(
    "removal.broker_away",
    _(
        "The setting cannot be removed while the contents of its queues are unknown. The "
        "broker is not responding: %(problem)s"
    ),
)

# -- whose version changed on a server --
AGENT_VERSION = ReasonKind("version.agent", _("agent %(agent)s"))
KMA_VERSION = ReasonKind("version.kma", "KMA")

# -- what KMAs report --
for _code, _sentence in SENTENCES.items():
    ReasonKind(_code, _(_sentence))

# -- how a delivery ended that waited for an answer: what is known here --
DELIVERED_AGAIN = ReasonKind(
    "delivery.delivered_again", _("The server is offline, and the message was redelivered.")
)
AGENT_ON = ReasonKind("delivery.agent_on", _("agent on %(server)s"))

# -- the message that blocks an ordered subscription --
BLOCKED = ReasonKind(
    "run.blocked",
    _("blocked by message %(key)s: attempt %(attempt)s failed; retried only on request"),
)
BLOCKED_FOR = ReasonKind(
    "run.blocked_for",
    _("blocked by message %(key)s: attempt %(attempt)s failed, retries every %(seconds)s s"),
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
