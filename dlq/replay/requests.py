"""Describes what a person asks for, before it is a job: the same for pages, REST and the command line.

Who may, and what would happen; `dlq.replay.creation` makes the job of it. The planning of a job leaves out by
the same rules as its pre-flight (`dlq.replay.scopes`), so nobody is told what then does not happen.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from typing import Any

import structlog
from django.conf import settings
from django.db.models import F, QuerySet
from django.utils.translation import gettext as _

from agents.models import LaunchSetting, OfferedAgent, PoisonPolicy, Run
from agents.models.server import lost_before
from agents.pools.rights import why_not
from agents.provisioning.queue_counts import Figures, asked_now, broker_away_since, figures_of, message_count
from agents.provisioning.topology import REMOVING
from broker.management.queues import find
from broker.port import BrokerError
from console.audit.log import Person
from console.broker import management, with_timeout
from console.operations.refusals import NotAllowed, Refused, WronglyAsked
from console.ui.amounts import number
from contract.messages import BlockedMessage
from contract.wire import load
from dlq import rights
from dlq.models import Action, DeadLetter, InOrder, Scope
from dlq.models.replay import DELIVERING, TO_A_SUBSCRIPTION, Route, route
from dlq.replay.preflight.handling import Difference, Handling, differences
from dlq.replay.preflight.rules import Letter, PreflightResult, ReplayTarget, Way, judge
from dlq.replay.scopes import LISTED, check_of_setting, matching, policy_for, read, source_rows, with_past

log = structlog.get_logger(__name__)

LEAST_PER_SECOND, MOST_PER_SECOND = 0.001, 1_000_000.0
# Ids in one request of a person; a filter has no such bound.
LARGEST_SELECTION = 5000
# In order each dead letter is a move of its own, some hundred a second.
MOST_IN_ORDER = 20_000
MOST_HOLD_MINUTES = 24 * 60
HOLD_MINUTES = 60  # where nobody says more


@dataclass(frozen=True, slots=True)
class Options:
    """Says how a job goes about its dead letters, in columns of it. `per_second` 0: as fast as the broker.
    `window_from` and `window_until`: local times of day, both or neither; the window may span midnight.
    `ladder`: 1, 5, 25, … dead letters, and it stops by itself when more than `ladder_percent` of a step fail
    again. `edit_rule` is what an edit does to each dead letter. `in_order`: in the order of publishing,
    behind or ahead of what waits; `hold_minutes`: how long the subscription is held for that at most."""

    per_second: float = 0.0
    window_from: time | None = None
    window_until: time | None = None
    ladder: bool = False
    ladder_percent: int = 10
    edit_rule: dict[str, Any] = field(default_factory=dict)
    in_order: str = ""
    hold_minutes: int = 0

    def problem(self) -> str:
        """Returns what is wrong with them, for people; empty: nothing."""
        # What is no number is neither.
        if not (self.per_second == 0 or LEAST_PER_SECOND <= self.per_second <= MOST_PER_SECOND):
            return _("The rate is invalid. Enter 0 (unlimited) or 0.001 to 1,000,000 messages per second.")
        if (self.window_from is None) != (self.window_until is None):
            return _("Set both ends of the time window, or neither.")
        if self.window_from is not None and self.window_from == self.window_until:
            return _("The time window is empty: set different start and end times.")
        if not 0 <= self.ladder_percent <= 100:
            return _("The ladder threshold is invalid: enter a percentage from 0 to 100.")
        if self.in_order and self.in_order not in InOrder.values:
            return _("The order is invalid: use “behind” or “ahead”, or leave it empty.")
        if self.in_order == InOrder.AHEAD and not 1 <= self.hold_minutes <= MOST_HOLD_MINUTES:
            return _("The hold time is invalid: enter 1 to %(most)s minutes.") % {"most": MOST_HOLD_MINUTES}
        if self.in_order != InOrder.AHEAD and self.hold_minutes:
            return _(
                "The hold time applies only to “before the waiting messages”. Choose that order or "
                "leave the hold time empty."
            )
        return ""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """`letters` for the scopes one and selection, `query` for group and matching, `target` for a redirect.
    `up_to`: the last row of a scope that is no list, as somebody was shown it (None: as far as there are
    any). `detail` is for the audit."""

    setting: LaunchSetting
    action: str
    scope: str
    letters: Sequence[int] = ()
    query: str = ""
    target: LaunchSetting | None = None
    reason: str = ""
    options: Options = field(default_factory=Options)
    acknowledged: Sequence[str] = ()
    up_to: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def route(self) -> Route:
        ahead = self.options.in_order == InOrder.AHEAD
        return route(self.action, self.setting.key, self.target.key if self.target else "", ahead=ahead)

    @property
    def elsewhere(self) -> bool:
        """A redirect leaves the destination: another policy, another agent."""
        return self.target is not None and self.target.destination_id != self.setting.destination_id

    @property
    def receiver(self) -> LaunchSetting | None:
        """The setting whose agent gets them; None for what goes into a dead-letter queue."""
        if self.action == Action.REDIRECT:
            return self.target
        return self.setting if self.action in DELIVERING else None

    def rows(self, by: Person) -> QuerySet[DeadLetter]:
        """The dead letters of the scope, as the job would take them. Raises Refused for a filter that is
        wrong."""
        if self.scope in LISTED:
            return source_rows(self.action, self.setting.key).filter(pk__in=self.letters)
        rows = matching(self.action, self.setting.key, self.scope, self.query, by)
        return rows if self.up_to is None else rows.filter(pk__lte=self.up_to)


def listed_scope(letters: Sequence[int]) -> Scope:
    return Scope.ONE if len(letters) == 1 else Scope.SELECTION


def check_rights(by: Any, replay_request: ReplayRequest) -> None:
    """Raises NotAllowed; nothing about the dead letters was looked at."""
    right = rights.right_of(replay_request.action, elsewhere=replay_request.elsewhere)
    if replay_request.action == Action.REDIRECT and replay_request.target is None:
        right = rights.right_to_redirect(by, replay_request.setting)
    why = why_not(by, rights.SEE, replay_request.setting) or why_not(by, right, replay_request.setting)
    if not why and replay_request.target is not None:
        why = why_not(by, right, replay_request.target)
    if why:
        raise NotAllowed(why)


def check_request(replay_request: ReplayRequest, *, by: Person, now: datetime) -> PreflightResult:
    """Returns whether this person may, and what would happen; changes nothing. Raises NotAllowed, Refused."""
    check_rights(by, replay_request)
    letters = set(replay_request.letters)
    if len(replay_request.letters) > LARGEST_SELECTION:
        text = _("The request was refused: it contains too many messages. Select at most %(n)s.") % {
            "n": LARGEST_SELECTION
        }
        raise WronglyAsked("too_many", text, limit=LARGEST_SELECTION)
    # A page asks before somebody has chosen where a redirect goes to.
    if replay_request.action != Action.REDIRECT or replay_request.target is not None:
        check_question(replay_request)
    verdict = run_preflight(replay_request, by, now)
    if replay_request.scope in LISTED and verdict.seen < len(letters):
        check_of_setting(letters, set(replay_request.rows(by).values_list("pk", flat=True)))
    if replay_request.options.in_order and verdict.at_most > MOST_IN_ORDER:
        text = _(
            "Publishing order is available for at most %(n)s messages, because each is moved separately."
        ) % {"n": number(MOST_IN_ORDER)}
        raise WronglyAsked(
            "too_many_in_order", text, _("Narrow the selection with a filter."), limit=MOST_IN_ORDER
        )
    return verdict


def check_question(replay_request: ReplayRequest) -> None:
    """Refuses what no state of the dead letters would allow. Raises Refused."""
    action, options = replay_request.action, replay_request.options
    if action not in Action.values or replay_request.scope not in Scope.values:
        raise WronglyAsked("not_understood", _("Unknown action or scope."))
    if problem := options.problem():
        raise WronglyAsked("bad_options", problem)
    if options.ladder and action not in DELIVERING:
        raise WronglyAsked(
            "bad_options", _("A ladder is possible only for actions whose outcomes are reported by agents.")
        )
    if options.in_order and action not in TO_A_SUBSCRIPTION:
        raise WronglyAsked("bad_options", _("Publishing order is available only for replay and redirect."))
    if action != Action.REDIRECT:
        return
    setting, target = replay_request.setting, replay_request.target
    if target is None or target.pk == setting.pk:
        raise WronglyAsked("no_target", _("Choose another setting to receive the messages."))
    if refused := target_refusal(target, elsewhere=replay_request.elsewhere):
        raise refused


def target_refusal(target: LaunchSetting, *, elsewhere: bool) -> Refused | None:
    """Returns why this setting can get nothing by a redirect now, or None."""
    name = {"key": target.key}
    if not target.takes_messages:
        return Refused(
            "target_standalone",
            _("Cannot redirect to “%(key)s”: a standalone agent receives no messages.") % name,
            _("Choose a setting with a destination."),
        )
    if target.wanted_hash == REMOVING:
        return removed(target)
    if elsewhere and (attempt := blocked_attempt(target)) is not None:
        return Refused(
            "target_blocked",
            _(
                "Cannot redirect to “%(key)s”: its ordered subscription is blocked by a message "
                "(attempt %(n)s)."
            )
            % (name | {"n": number(attempt)}),
            _("Fix the cause or move that message to the DLQ, then try again."),
            attempt=attempt,
        )
    return None


def removed(target: LaunchSetting) -> Refused:
    text = _("Cannot redirect to “%(key)s”: the setting is being removed.") % {"key": target.key}
    return Refused("target_removed", text, _("Choose another setting."))


def blocked_attempt(setting: LaunchSetting) -> int | None:
    """Returns the attempt of the message that blocks its ordered subscription, as a run of it reported last;
    None: none blocks it."""
    if not (setting.ordered and setting.enabled):
        return None
    runs = Run.objects.filter(activation__setting=setting, closed_at=None, blocked__isnull=False)
    latest = runs.order_by(F("reported_at").desc(nulls_last=True), "-pk").first()
    return None if latest is None else load(BlockedMessage, latest.blocked).attempt


# -- pre-flight: what would happen, by at most COUNTED dead letters, one setting, the broker's figures -------


COUNTED = 10_000


def run_preflight(replay_request: ReplayRequest, by: Person, now: datetime) -> PreflightResult:
    """Checks the newest dead letters, COUNTED at most, whatever the scope holds. Never raises because the
    broker is away."""
    rows = replay_request.rows(by)
    found = read(rows.order_by("-pk")[: COUNTED + 1])
    letters, more = found[:COUNTED], len(found) > COUNTED
    place, node, one = _place_of(replay_request, now), _node_id(), replay_request.scope == Scope.ONE
    if replay_request.elsewhere:
        place = replace(place, differences=_differences(replay_request, letters, place.versions, now))
    policy = policy_for(replay_request.setting.key, replay_request.action, now=now, one=one, node_id=node)
    policy, options = with_past(letters, policy), replay_request.options
    return judge(
        [(letter, policy.why_not(letter)) for letter in letters],
        policy,
        place,
        total=_total(replay_request, rows) if more else None,
        way=Way(options.ladder, options.in_order, options.hold_minutes),
    )


def _node_id() -> str:
    """Returns the id of the broker that is asked; empty while it does not answer."""
    if broker_away_since():
        return ""
    try:
        return str(with_timeout(lambda: management().attribute("broker", "NodeID")))
    except BrokerError:
        return ""


def _place_of(replay_request: ReplayRequest, now: datetime) -> ReplayTarget:
    """Returns where dead letters go: into the subscription of a setting, or into a dead-letter queue."""
    target, queue = replay_request.receiver, replay_request.route.target
    if target is None:
        return ReplayTarget(queue, exists=replay_request.action not in DELIVERING)
    # A count of some seconds ago may be of before it was switched off.
    figures = figures_of(target) if target.enabled else asked_now(target)
    versions = _offered(target, now)
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
        held=target.held_by is not None,
    )


def _offered(setting: LaunchSetting, now: datetime) -> list[str]:
    """The version of its agent at each live server of its pool where it is not stopped."""
    offers = OfferedAgent.objects.filter(
        name=setting.agent, server__pools=setting.pool_id, server__last_seen_at__gt=lost_before(now)
    )
    return list(offers.exclude(server__setting_stops__setting=setting).values_list("version", flat=True))


def _differences(
    replay_request: ReplayRequest, letters: Sequence[Letter], versions: Collection[str], now: datetime
) -> tuple[Difference, ...]:
    source, target = replay_request.setting, replay_request.target
    if target is None or target.destination is None or source.destination is None:
        return ()
    here, there = _handling(source, _offered(source, now)), _handling(target, versions)
    return differences(here, there, [letter.attempts for letter in letters])


def _handling(setting: LaunchSetting, versions: Collection[str]) -> Handling:
    policy = setting.subscribed.policy
    to_exceptions, repeats = setting.after_last == PoisonPolicy.EXCEPTION, bool(setting.duplicate_key)
    return Handling(
        destination=setting.subscribed.name,
        agent=setting.agent,
        versions=tuple(sorted(filter(None, set(versions)))),
        mode=setting.mode,
        ordered=setting.ordered,
        max_attempts=policy.max_attempts,
        delay_ms=policy.delay,
        multiplier=policy.multiplier,
        after_last=setting.after_last,
        exception_destination=setting.exception_destination if to_exceptions else "",
        duplicate_key=setting.duplicate_key,
        duplicate_window_seconds=setting.duplicate_window_seconds if repeats else 0.0,
        handling_timeout_seconds=setting.handling_timeout_seconds,
        masked_properties=tuple(sorted(setting.masked_properties)),
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
        log.info("existence of the subscription unknown", setting=target.key, reason=str(error))
        return False


def _total(replay_request: ReplayRequest, rows: QuerySet[DeadLetter]) -> int:
    """Asks the broker for all of a queue. The index, for a filter, no further than somebody asks: whether
    there are too many for one person."""
    whole = replay_request.scope == Scope.ALL and replay_request.action != Action.PUT_BACK
    if whole and (exact := message_count(replay_request.route.source)):
        return exact
    bound: int = settings.MA_SECOND_PERSON_ABOVE + 1
    return rows.order_by()[:bound].count() if bound > COUNTED else COUNTED
