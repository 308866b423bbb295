"""Describes which dead letters a job is about: the rows of its scope, frozen, and the list that people
chose."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from console.operations.refusals import Refused, WronglyAsked
from contract.names import dead_letter_queue
from dlq.models import Action, DeadLetter, ItemState, LetterState, ReplayItem, ReplayJob, Scope
from dlq.replay import counts
from dlq.replay.counts import write_items
from dlq.replay.preflight import skips
from dlq.replay.rules.actions import route

PIECE = 1000
SHOWN_IDS = 20
LISTED = (Scope.ONE, Scope.SELECTION)


def replayable(setting: LaunchSetting) -> QuerySet[DeadLetter]:
    """Dead letters of the setting's queue that can be replayed: dead, not on their way, with an id to move
    them by."""
    # Asked dead letter by dead letter: a page that counts up to a bound never reads every item there ever
    # was.
    outstanding = ReplayItem.objects.filter(letter=OuterRef("pk"), released_as="")
    letters = DeadLetter.objects.filter(
        queue=dead_letter_queue(setting.key), state=LetterState.DEAD, orig_message_id__gte=0
    )
    return letters.filter(~Exists(outstanding))


def source_rows(action: str, key: str) -> QuerySet[DeadLetter]:
    """Every dead letter, in any state, of the queue that the action takes dead letters of this setting
    from."""
    from_here = route(action, key)
    letters = DeadLetter.objects.filter(queue=from_here.source)
    if action != Action.PUT_BACK:
        return letters
    # In the trash lie the dead letters of all settings, each with the queue that it came from; the key has an
    # index.
    return letters.filter(setting_key=key, orig_queue=from_here.target)


def matching(
    action: str, key: str, scope: str, query: str, by: object, at: datetime | None = None
) -> QuerySet[DeadLetter]:
    """The dead letters of a scope that is no list, by a filter that was asked `at` (None: now).

    Raises Refused: the filter is not understood."""
    letters = source_rows(action, key).filter(state=LetterState.DEAD)
    if scope == Scope.ALL:
        return letters
    # They ask for what is outstanding, as this package does.
    from dlq.search.filter import LetterFilter
    from dlq.search.visibility import found

    if names := sorted(LetterFilter.page_own.intersection(QueryDict(query))):
        # On a page they choose the dead letters, or the part of a list that is shown; as a filter they would
        # find all.
        raise WronglyAsked(
            "bad_filter",
            _("No filter, but of the address of a page: %(names)s. Nothing was chosen by it.")
            % {"names": ", ".join(names)},
            _("Name letters by their numbers, or leave these out."),
        )
    if by is None:
        raise Refused(
            "nobody", _("Nobody stands for that filter: the person who asked is not there any more.")
        )
    filters, rows = found(query, by, rows=letters, at=at)
    if not filters.is_valid():  # what is wrong in it would be left out, and more would go than was meant
        raise WronglyAsked("bad_filter", _("That filter is not understood; nothing was chosen by it."))
    return rows


def frozen(job: ReplayJob) -> QuerySet[DeadLetter]:
    """The rows of a job whose scope is no list, as they were when somebody asked: "the last hour" is the one
    before."""
    rows = matching(job.action, job.setting_key, job.scope, job.query, job.by, job.created_at)
    return rows.filter(pk__lte=job.letters_up_to or 0)


def freeze_list(job: ReplayJob, letters: Sequence[int], now: datetime) -> None:
    """An item for each of these dead letters, planned or left out with why. Call it in the transaction that
    makes the job; raises Refused. Of two jobs that take one dead letter at once the database lets one have
    it."""
    for start in range(0, len(letters), PIECE):
        _freeze_piece(job, letters[start : start + PIECE], now)
    counts.recount(job.pk)


def _freeze_piece(job: ReplayJob, ids: Sequence[int], now: datetime) -> None:
    found = skips.read(source_rows(job.action, job.setting_key).filter(pk__in=ids))
    if foreign := sorted(set(ids) - {letter.pk for letter in found}):
        raise Refused(
            "not_of_setting",
            _("Some letters are not dead letters of this setting."),
            _("Choose from the dead letters of one setting."),
            letters=foreign[:SHOWN_IDS],
        )
    policy = skips.policy_for(job.setting_key, job.action, now=now, one=job.scope == Scope.ONE)
    why = {letter.pk: reason for letter, reason in skips.judged(found, policy)}
    _write(job, {pk: reason for pk, reason in why.items() if not reason}, now)
    taken = set(job.items.filter(letter__in=ids).values_list("letter", flat=True))
    _write(job, {pk: reason or skips.OUTSTANDING for pk, reason in why.items() if pk not in taken}, now)


def _write(job: ReplayJob, why: dict[int, str], now: datetime) -> None:
    by_reason: dict[str, list[int]] = defaultdict(list)
    for pk, reason in sorted(why.items()):
        by_reason[reason].append(pk)
    for reason, letters in by_reason.items():
        state = ItemState.SKIPPED if reason else ItemState.PLANNED
        write_items(job, letters, now, state=state, why=reason)
