"""Describes what a person asks for, from the first look to the job: the same for pages, REST and the command
line.

Who may, what would happen, what has to be acknowledged first; then `dlq.replay.creation.create_job` writes it
down. The planning of a job leaves out by the same rules as its pre-flight (`dlq.replay.scopes`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import LaunchSetting, OfferedAgent
from agents.models.server import lost_before
from agents.pools.rights import why_not
from agents.provisioning.queue_counts import Figures, asked_now, broker_away_since, figures_of, message_count
from broker.management.queues import find
from broker.port import BrokerError
from console.audit.log import Person, attempt
from console.broker import management, with_timeout
from console.operations.refusals import NotAllowed, Refused, WronglyAsked
from console.ui.amounts import number
from contract.names import BIN, dead_letter_queue
from dlq import rights
from dlq.models import Action, DeadLetter, ReplayJob, Scope
from dlq.models.replay import route
from dlq.replay import scopes
from dlq.replay.creation import LARGEST_SELECTION, Options, Store, check_question, code_of, create_job
from dlq.replay.preflight.rules import PreflightResult, ReplayTarget, judge
from dlq.replay.preflight.text import reason, sentence
from dlq.replay.scopes import LISTED, SHOWN_IDS, Letter, matching, policy_for, read, source_rows, with_past

# -- facts for a pre-flight: at most COUNTED dead letters, one setting, the broker's figures -----------------


log = structlog.get_logger(__name__)

COUNTED = 10_000


def letters_of(rows: QuerySet[DeadLetter]) -> tuple[list[Letter], bool]:
    """The newest COUNTED dead letters of a scope, and whether there are more."""
    found = read(rows.order_by("-pk")[: COUNTED + 1])
    return found[:COUNTED], len(found) > COUNTED


def place_of(action: str, target: LaunchSetting | None, queue: str, now: datetime) -> ReplayTarget:
    """Returns where dead letters go: into the subscription of `target`, or (`discard`, `put back`) into a
    dead-letter queue."""
    if action == Action.DISCARD:
        return ReplayTarget(dead_letter_queue(BIN))
    if action == Action.PUT_BACK:
        return ReplayTarget(queue)
    if target is None:
        return ReplayTarget(queue, exists=False)
    # A count of some seconds ago may be of before it was switched off.
    figures = figures_of(target) if target.enabled else asked_now(target)
    offers = OfferedAgent.objects.filter(
        name=target.agent, server__pools=target.pool_id, server__last_seen_at__gt=lost_before(now)
    )
    versions = list(offers.values_list("version", flat=True))
    return ReplayTarget(
        queue=target.key,
        setting_key=target.key,
        exists=target.takes_messages and not _missing(target, figures),
        enabled=target.enabled,
        tripped=not target.enabled and target.trips.filter(ended_at=None).exists(),
        consumers=None if figures.stale else figures.consumers,
        servers=len(versions),
        versions=frozenset(filter(None, versions)),
        ordered=target.ordered,
        newer=_newer(figures),
    )


def _newer(figures: Figures) -> int | None:
    if figures.waiting is None:
        return None
    return figures.waiting + (figures.delayed or 0) + (figures.in_delivery or 0)


def _missing(target: LaunchSetting, figures: Figures) -> bool:
    """Returns whether the broker says that the subscription is not there. One that does not answer says
    nothing."""
    if not figures.problem:
        return False
    try:
        return with_timeout(lambda: find(management(), "listQueues", target.key)) is None
    except BrokerError as error:
        log.info("nobody knows whether a subscription is there", setting=target.key, reason=str(error))
        return False


def index_count(rows: QuerySet[DeadLetter]) -> int:
    """Counts above COUNTED no further than somebody asks: whether there are too many for one person."""
    bound: int = settings.MA_SECOND_PERSON_ABOVE + 1
    return rows.order_by()[:bound].count() if bound > COUNTED else COUNTED


def exact_count(queue: str) -> int | None:
    """The broker's count of a dead-letter queue."""
    return message_count(queue)


def node_id() -> str:
    """Returns the id of the broker that is asked; empty while it does not answer."""
    try:
        return str(with_timeout(lambda: management().attribute("broker", "NodeID")))
    except BrokerError:
        return ""


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """Holds what a person wants to do: `rows` are the dead letters of the scope, as the job would take them.
    `target` is the setting that gets them: None for what goes into a dead-letter queue, `target_queue`
    then."""

    setting_key: str
    action: str
    scope: str
    rows: QuerySet[DeadLetter]
    source_queue: str
    target: LaunchSetting | None = None
    target_queue: str = ""
    ladder: bool = False


def run_preflight(asked: PreflightRequest, now: datetime) -> PreflightResult:
    """Checks at most 10,000 dead letters, whatever the scope holds. Never raises because the broker is
    away."""
    one = asked.scope == Scope.ONE
    letters, more = letters_of(asked.rows)
    place = place_of(asked.action, asked.target, asked.target_queue, now)
    node = "" if broker_away_since() else node_id()
    policy = with_past(letters, policy_for(asked.setting_key, asked.action, now=now, one=one, node_id=node))
    why = [(letter, policy.why_not(letter)) for letter in letters]
    return judge(why, policy, place, total=_total(asked) if more else None, ladder=asked.ladder)


def _total(asked: PreflightRequest) -> int:
    """Asks the broker for all of a queue, the index for a filter."""
    whole = asked.scope == Scope.ALL and asked.action != Action.PUT_BACK
    return (exact_count(asked.source_queue) if whole else None) or index_count(asked.rows)


# -- what a person asks for ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """`letters` for the scopes one and selection, `query` for group and matching, `target` for a redirect.
    `detail` is for the audit."""

    setting: LaunchSetting
    action: str
    scope: str
    letters: Sequence[int] = ()
    query: str = ""
    target: LaunchSetting | None = None
    reason: str = ""
    options: Options = field(default_factory=Options)
    acknowledged: Sequence[str] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)

    def rows(self, by: Person) -> QuerySet[DeadLetter]:
        """The dead letters of the scope, as the job would take them. Raises Refused for a filter that is
        wrong."""
        if self.scope in LISTED:
            return source_rows(self.action, self.setting.key).filter(pk__in=self.letters)
        return matching(self.action, self.setting.key, self.scope, self.query, by)


def listed_scope(letters: Sequence[int]) -> Scope:
    return Scope.ONE if len(letters) == 1 else Scope.SELECTION


def check_rights(by: Any, replay_request: ReplayRequest) -> None:
    """Raises NotAllowed; nothing about the dead letters was looked at."""
    right = rights.OF_ACTIONS[replay_request.action]
    why = why_not(by, rights.SEE, replay_request.setting) or why_not(by, right, replay_request.setting)
    if not why and replay_request.target is not None:
        why = why_not(by, right, replay_request.target)
    if why:
        raise NotAllowed(why)


def check_request(replay_request: ReplayRequest, *, by: Person, now: datetime) -> PreflightResult:
    """Returns whether this person may, and what would happen; changes nothing. Raises NotAllowed, Refused."""
    check_rights(by, replay_request)
    if len(replay_request.letters) > LARGEST_SELECTION:
        text = _("At most %(n)s letters at a time.") % {"n": LARGEST_SELECTION}
        raise WronglyAsked("too_many", text, limit=LARGEST_SELECTION)
    # A page asks before somebody has chosen where a redirect goes to.
    if replay_request.action != Action.REDIRECT or replay_request.target is not None:
        check_question(
            replay_request.setting,
            replay_request.action,
            replay_request.scope,
            replay_request.options,
            replay_request.target,
        )
    flight = _judged(replay_request, by, now)
    if replay_request.scope in LISTED and flight.seen < len(set(replay_request.letters)):
        raise _not_of_setting(replay_request)
    return flight


def _judged(replay_request: ReplayRequest, by: Person, now: datetime) -> PreflightResult:
    way = route(
        replay_request.action,
        replay_request.setting.key,
        replay_request.target.key if replay_request.target else "",
    )
    target = {
        Action.REDIRECT: replay_request.target,
        Action.GIVE_BACK: replay_request.setting,
        Action.EDIT: replay_request.setting,
    }
    asked = PreflightRequest(
        setting_key=replay_request.setting.key,
        action=replay_request.action,
        scope=replay_request.scope,
        rows=replay_request.rows(by),
        source_queue=way.source,
        target=target.get(Action(replay_request.action)),
        target_queue=way.target,
        ladder=replay_request.options.ladder,
    )
    return run_preflight(asked, now)


@contextmanager
def attempted(replay_request: ReplayRequest, by: Person) -> Iterator[None]:
    """Outside of every transaction, around `check_request` and `run`: what is refused leaves one entry in the
    audit."""
    only = replay_request.letters[0] if replay_request.scope == Scope.ONE and replay_request.letters else None
    key = replay_request.setting.key
    code = code_of(replay_request.action, replay_request.options)
    with attempt(code, by=by, target=f"setting:{key}", setting_key=key, letter=only):
        yield


def begin_replay(
    replay_request: ReplayRequest, *, by: Person, now: datetime, store: Store | None = None
) -> ReplayJob:
    """Checks it, and begins it. Raises NotAllowed, Refused, after the entry of the audit."""
    with attempted(replay_request, by):
        return run(replay_request, check_request(replay_request, by=by, now=now), by=by, now=now, store=store)


def run(
    replay_request: ReplayRequest,
    flight: PreflightResult,
    *,
    by: Person,
    now: datetime,
    store: Store | None = None,
) -> ReplayJob:
    """The job of what was just checked. Raises Refused: `reason_needed`, `unacknowledged` (`warnings`: their
    codes), and what `create_job` refuses."""
    if replay_request.action == Action.DISCARD and not replay_request.reason.strip():
        text = _("Say why: discarded letters are removed for good one day.")
        raise WronglyAsked("reason_needed", text)
    _check_going(replay_request, flight)
    if warnings := flight.missing(replay_request.acknowledged):
        raise Refused(
            "unacknowledged",
            " ".join(sentence(warning) for warning in warnings),
            _("Look at what would happen, then acknowledge: %(codes)s.")
            % {"codes": ", ".join(warning.code for warning in warnings)},
            warnings=[warning.code for warning in warnings],
        )
    return create_job(
        replay_request.setting,
        action=replay_request.action,
        scope=replay_request.scope,
        by=by,
        now=now,
        letters=replay_request.letters if replay_request.scope in LISTED else None,
        query=replay_request.query,
        reason=replay_request.reason,
        target=replay_request.target,
        options=replay_request.options,
        acknowledged=replay_request.acknowledged,
        judged=flight,
        store=store,
        detail=replay_request.detail,
    )


def _not_of_setting(replay_request: ReplayRequest) -> Refused:
    """A list names dead letters of one setting only: who names others has looked at something else."""
    known = set(
        source_rows(replay_request.action, replay_request.setting.key)
        .filter(pk__in=replay_request.letters)
        .values_list("pk", flat=True)
    )
    return Refused(
        "not_of_setting",
        _("Some letters are not dead letters of this setting."),
        _("Choose from the dead letters of one setting."),
        letters=sorted(set(replay_request.letters) - known)[:SHOWN_IDS],
    )


def _check_going(replay_request: ReplayRequest, flight: PreflightResult) -> None:
    if flight.going:
        return
    if not flight.seen:
        raise Refused("nothing_to_give_back", _("There is no dead letter of this setting that could go."))
    taken = flight.skipped.keys() & {scopes.OUTSTANDING, scopes.GONE}
    why = "; ".join(f"{reason(code)}: {number(count)}" for code, count in flight.skipped.items())
    raise Refused(
        "outstanding" if taken else "nothing_to_give_back",
        _("None of these letters can go: %(why)s.") % {"why": why},
        letters=sorted(pk for some in flight.examples.values() for pk in some)[:SHOWN_IDS],
        skipped=flight.skipped,
    )
