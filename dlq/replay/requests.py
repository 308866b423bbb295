"""Describes what a person asks for, from the first look to the job: the same for pages, REST and the command
line.

Who may, what would happen, what has to be acknowledged first; then `dlq.replay.creation.create_job` writes it
down.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.pools.rights import why_not
from console.audit.log import Person, attempt
from console.operations.refusals import NotAllowed, Refused, WronglyAsked
from console.ui.amounts import number
from dlq import rights
from dlq.models import Action, DeadLetter, ReplayJob, Scope
from dlq.replay.creation import LARGEST_SELECTION, Options, Store, check_question, code_of, create_job
from dlq.replay.preflight import queries, skips
from dlq.replay.preflight.rules import PreflightResult
from dlq.replay.preflight.text import reason, sentence
from dlq.replay.rules.actions import RIGHTS, route
from dlq.replay.scopes import LISTED, SHOWN_IDS, matching, source_rows


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
    right = RIGHTS[replay_request.action]
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
    asked = queries.PreflightRequest(
        setting_key=replay_request.setting.key,
        action=replay_request.action,
        scope=replay_request.scope,
        rows=replay_request.rows(by),
        source_queue=way.source,
        target=target.get(Action(replay_request.action)),
        target_queue=way.target,
        ladder=replay_request.options.ladder,
    )
    return queries.run_preflight(asked, now)


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
    taken = flight.skipped.keys() & {skips.OUTSTANDING, skips.GONE}
    why = "; ".join(f"{reason(code)}: {number(count)}" for code, count in flight.skipped.items())
    raise Refused(
        "outstanding" if taken else "nothing_to_give_back",
        _("None of these letters can go: %(why)s.") % {"why": why},
        letters=sorted(pk for some in flight.examples.values() for pk in some)[:SHOWN_IDS],
        skipped=flight.skipped,
    )
