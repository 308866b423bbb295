"""What a person asks for, from the first look to the job: the same for pages, REST and the command line.

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
from dlq.replay.preflight.rules import Flight
from dlq.replay.preflight.text import reason, sentence
from dlq.replay.rules.actions import RIGHTS, route
from dlq.replay.scopes import LISTED, SHOWN_IDS, matching, place


@dataclass(frozen=True, slots=True)
class Wish:
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
        """The letters of the scope, as the job would take them. Raises Refused for a filter that is
        wrong."""
        if self.scope in LISTED:
            return place(self.action, self.setting.key).filter(pk__in=self.letters)
        return matching(self.action, self.setting.key, self.scope, self.query, by)


def listed_scope(letters: Sequence[int]) -> Scope:
    return Scope.ONE if len(letters) == 1 else Scope.SELECTION


def check_rights(by: Any, wish: Wish) -> None:
    """Raises NotAllowed; nothing about the letters was looked at."""
    right = RIGHTS[wish.action]
    why = why_not(by, rights.SEE, wish.setting) or why_not(by, right, wish.setting)
    if not why and wish.target is not None:
        why = why_not(by, right, wish.target)
    if why:
        raise NotAllowed(why)


def check(wish: Wish, *, by: Person, now: datetime) -> Flight:
    """Whether this person may, and what would happen; changes nothing. Raises NotAllowed, Refused."""
    check_rights(by, wish)
    if len(wish.letters) > LARGEST_SELECTION:
        text = _("At most %(n)s letters at a time.") % {"n": LARGEST_SELECTION}
        raise WronglyAsked("too_many", text, limit=LARGEST_SELECTION)
    # A page asks before somebody has chosen where a redirect goes to.
    if wish.action != Action.REDIRECT or wish.target is not None:
        check_question(wish.setting, wish.action, wish.scope, wish.options, wish.target)
    flight = _judged(wish, by, now)
    if wish.scope in LISTED and flight.seen < len(set(wish.letters)):
        raise _not_of_setting(wish)
    return flight


def _judged(wish: Wish, by: Person, now: datetime) -> Flight:
    way = route(wish.action, wish.setting.key, wish.target.key if wish.target else "")
    target = {Action.REDIRECT: wish.target, Action.GIVE_BACK: wish.setting, Action.EDIT: wish.setting}
    asked = queries.Asked(
        setting_key=wish.setting.key,
        action=wish.action,
        scope=wish.scope,
        rows=wish.rows(by),
        source_queue=way.source,
        target=target.get(Action(wish.action)),
        target_queue=way.target,
        ladder=wish.options.ladder,
    )
    return queries.fly(asked, now)


@contextmanager
def attempted(wish: Wish, by: Person) -> Iterator[None]:
    """Outside of every transaction, around `check` and `run`: what is refused leaves one entry in the
    audit."""
    only = wish.letters[0] if wish.scope == Scope.ONE and wish.letters else None
    key = wish.setting.key
    code = code_of(wish.action, wish.options)
    with attempt(code, by=by, target=f"setting:{key}", setting_key=key, letter=only):
        yield


def begin(wish: Wish, *, by: Person, now: datetime, store: Store | None = None) -> ReplayJob:
    """Checks it, and begins it. Raises NotAllowed, Refused, after the entry of the audit."""
    with attempted(wish, by):
        return run(wish, check(wish, by=by, now=now), by=by, now=now, store=store)


def run(wish: Wish, flight: Flight, *, by: Person, now: datetime, store: Store | None = None) -> ReplayJob:
    """The job of what was just checked. Raises Refused: `reason_needed`, `unacknowledged` (`warnings`: their
    codes), and what `create_job` refuses."""
    if wish.action == Action.DISCARD and not wish.reason.strip():
        text = _("Say why: discarded letters are removed for good one day.")
        raise WronglyAsked("reason_needed", text)
    _check_going(wish, flight)
    if warnings := flight.missing(wish.acknowledged):
        raise Refused(
            "unacknowledged",
            " ".join(sentence(warning) for warning in warnings),
            _("Look at what would happen, then acknowledge: %(codes)s.")
            % {"codes": ", ".join(warning.code for warning in warnings)},
            warnings=[warning.code for warning in warnings],
        )
    return create_job(
        wish.setting,
        action=wish.action,
        scope=wish.scope,
        by=by,
        now=now,
        letters=wish.letters if wish.scope in LISTED else None,
        query=wish.query,
        reason=wish.reason,
        target=wish.target,
        options=wish.options,
        acknowledged=wish.acknowledged,
        judged=flight,
        store=store,
        detail=wish.detail,
    )


def _not_of_setting(wish: Wish) -> Refused:
    """A list names letters of one setting only: who names others has looked at something else."""
    known = set(place(wish.action, wish.setting.key).filter(pk__in=wish.letters).values_list("pk", flat=True))
    return Refused(
        "not_of_setting",
        _("Some letters are not dead letters of this setting."),
        _("Choose from the dead letters of one setting."),
        letters=sorted(set(wish.letters) - known)[:SHOWN_IDS],
    )


def _check_going(wish: Wish, flight: Flight) -> None:
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
