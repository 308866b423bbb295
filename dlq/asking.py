"""What a person asks for, from the first look to the job: the same for pages, REST and the command line.

Who may, what would happen, what has to be acknowledged first; then `dlq.replay.jobs.create_job` writes it
down.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.services.rights import may, missing
from console.audit.log import Person, attempt
from console.ui.amounts import number
from dlq import preflight, rights
from dlq.models import Action, DeadLetter, ReplayJob, Scope
from dlq.preflight import Flight, skipping
from dlq.preflight.words import reason, sentence
from dlq.replay.jobs import APPROVED, LARGEST_SELECTION, check_question, create_job
from dlq.replay.options import Options
from dlq.replay.refusal import ReplayRefused
from dlq.replay.routes import route
from dlq.replay.scopes import LISTED, SHOWN_IDS, matching, place

# Beside the right to see the letters. Who may discard may take it back.
RIGHTS: dict[str, str] = {
    Action.GIVE_BACK: rights.GIVE_BACK,
    Action.REDIRECT: rights.REDIRECT,
    Action.DISCARD: rights.DISCARD,
    Action.PUT_BACK: rights.DISCARD,
    Action.EDIT: rights.EDIT,
}


class NotAllowed(ReplayRefused):
    """This person may not; nothing about the letters was looked at."""


@dataclass(frozen=True, slots=True)
class Wish:
    """`letters` for the scopes one and selection, `query` for group and matching, `target` for a redirect."""

    setting: LaunchSetting
    action: str
    scope: str
    letters: Sequence[int] = ()
    query: str = ""
    target: LaunchSetting | None = None
    reason: str = ""
    options: Options = field(default_factory=Options)
    acknowledged: Sequence[str] = ()

    def rows(self, by: Person) -> QuerySet[DeadLetter]:
        """The letters of the scope, as the job would take them. Raises ReplayRefused for a filter that is
        wrong."""
        if self.scope in LISTED:
            return place(self.action, self.setting.key).filter(pk__in=self.letters)
        return matching(self.action, self.setting.key, self.scope, self.query, by)


def listed_scope(letters: Sequence[int]) -> Scope:
    return Scope.ONE if len(letters) == 1 else Scope.SELECTION


def why_may_not(by: Person, action: str, setting: LaunchSetting) -> str:
    """For people, empty where this person may."""
    for right in (rights.SEE, RIGHTS[action]):
        if not may(by, right, setting):
            return missing(right, setting.pool.name)
    return ""


def check_rights(by: Person, wish: Wish) -> None:
    """Raises NotAllowed."""
    why = why_may_not(by, wish.action, wish.setting)
    if not why and wish.target is not None and not may(by, RIGHTS[wish.action], wish.target):
        why = missing(RIGHTS[wish.action], wish.target.pool.name)
    if why:
        raise NotAllowed("permission_denied", why, _("Ask an administrator for the permission."))


def look(wish: Wish, *, by: Person, now: datetime) -> Flight:
    """What would happen; changes nothing. Raises NotAllowed, ReplayRefused."""
    check_rights(by, wish)
    _check_size(wish)
    # A page asks before somebody has chosen where a redirect goes to.
    if wish.action != Action.REDIRECT or wish.target is not None:
        check_question(wish.setting, wish.action, wish.scope, wish.options, wish.target)
    way = route(wish.action, wish.setting.key, wish.target.key if wish.target else "")
    target = {Action.REDIRECT: wish.target, Action.GIVE_BACK: wish.setting, Action.EDIT: wish.setting}
    asked = preflight.Asked(
        setting_key=wish.setting.key,
        action=wish.action,
        scope=wish.scope,
        rows=wish.rows(by),
        source_queue=way.source,
        target=target.get(Action(wish.action)),
        target_queue=way.target,
        ladder=wish.options.ladder,
    )
    return preflight.fly(asked, now)


def foresee(wish: Wish, *, by: Person, now: datetime) -> Flight:
    """As `look`, for a question that is put as a whole: it refuses letters of other settings too, which a
    page leaves out and shows. Raises NotAllowed, ReplayRefused."""
    flight = look(wish, by=by, now=now)
    _check_whose(wish)
    return flight


def second_above(wish: Wish, flight: Flight) -> int:
    """The limit of the site above which another person approves; 0: nobody has to."""
    limit: int = settings.MA_SECOND_PERSON_ABOVE
    return limit if limit and wish.action in APPROVED and flight.going > limit else 0


def begin(wish: Wish, *, by: Person, now: datetime) -> ReplayJob:
    """The job. Raises ReplayRefused, after it left an entry in the audit: NotAllowed, `reason_needed`,
    `unacknowledged` (`warnings`: their codes), and what `create_job` refuses."""
    only = wish.letters[0] if wish.scope == Scope.ONE and wish.letters else None
    with attempt(
        wish.action, by=by, target=f"setting:{wish.setting.key}", setting_key=wish.setting.key, letter=only
    ):
        flight = foresee(wish, by=by, now=now)
        if wish.action == Action.DISCARD and not wish.reason.strip():
            raise ReplayRefused(
                "reason_needed", _("Say why: discarded letters are removed for good one day.")
            )
        _check_going(wish, flight)
        if warnings := flight.missing(wish.acknowledged):
            raise ReplayRefused(
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
        )


def _check_whose(wish: Wish) -> None:
    """A list names letters of one setting only: who names others has looked at something else."""
    if wish.scope not in LISTED:
        return
    known = set(place(wish.action, wish.setting.key).filter(pk__in=wish.letters).values_list("pk", flat=True))
    if foreign := sorted(set(wish.letters) - known):
        raise ReplayRefused(
            "not_of_setting",
            _("Some letters are not dead letters of this setting."),
            _("Choose from the dead letters of one setting."),
            letters=foreign[:SHOWN_IDS],
        )


def _check_going(wish: Wish, flight: Flight) -> None:
    if flight.going:
        return
    if not flight.seen:
        raise ReplayRefused(
            "nothing_to_give_back", _("There is no dead letter of this setting that could go.")
        )
    taken = flight.skipped.keys() & {skipping.OUTSTANDING, skipping.GONE}
    why = "; ".join(f"{reason(code)}: {number(count)}" for code, count in flight.skipped.items())
    raise ReplayRefused(
        "outstanding" if taken else "nothing_to_give_back",
        _("None of these letters can go: %(why)s.") % {"why": why},
        letters=sorted(pk for some in flight.examples.values() for pk in some)[:SHOWN_IDS],
        skipped=flight.skipped,
    )


def _check_size(wish: Wish) -> None:
    if len(wish.letters) > LARGEST_SELECTION:
        raise ReplayRefused(
            "too_many",
            _("At most %(n)s letters at a time.") % {"n": LARGEST_SELECTION},
            limit=LARGEST_SELECTION,
        )
