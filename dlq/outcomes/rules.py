"""Decides what became of messages that were replayed, from what KMAs reported and which dead letters died.
Pure.

All facts of one case (setting and message key) are looked at together, so they may arrive in any order and
twice. Ids of one broker grow: a dead letter had `number` before it died, `letter_id` above it in the
dead-letter queue, and dies again with a `number` above that. So even a late report finds its own replay.
Equal messages without an id share a case: each report and each death then stands for one of them, the oldest
first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

# How far the clock of a KMA may be behind ours before a report counts as older than the replay.
SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A dead letter that left, or may have left, its dead-letter queue at `at` or later. `confirmed`: by a
    move of ours."""

    item: int
    number: int
    weak: bool
    at: datetime
    died_as: int | None = None
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """`handled` None: it was seen where its move brought it, and nobody has said what becomes of it."""

    letter_id: int | None
    handled: bool | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Death:
    letter: int
    number: int
    at: datetime


@dataclass(frozen=True, slots=True)
class MessageOutcome:
    """`outcome` as in `dlq.models.Outcome`. `arrived`: something was heard of it, so a move of ours took
    it."""

    outcome: str = ""
    at: datetime | None = None
    died_as: int | None = None
    arrived: bool = False


@dataclass
class _Story:
    given: Replayed
    failed_at: datetime | None = None
    handled_at: datetime | None = None
    letter_id: int | None = None
    death: Death | None = None
    reported: bool = False


def outcomes_by_item(
    given: Iterable[Replayed], reports: Sequence[Report], deaths: Iterable[Death]
) -> dict[int, MessageOutcome]:
    """The fate of each item, by its id."""
    stories = [_Story(one) for one in sorted(given, key=lambda one: one.number)]
    for returned in _by_letter(reports):
        _tell_report(stories, returned)
    taken = {story.given.died_as for story in stories if not _was_another(story)}
    for death in sorted(deaths, key=lambda death: death.number):
        _tell_death(stories, death, fixed=death.letter in taken)
    return {story.given.item: _outcome(story) for story in stories}


def _by_letter(reports: Sequence[Report]) -> list[list[Report]]:
    """Reports of one returned dead letter together, in the order of their ids; one without id stands alone,
    last."""
    known: dict[int, list[Report]] = {}
    alone = []
    for report in sorted(reports, key=lambda report: report.at):
        if report.letter_id is None:
            alone.append([report])
        else:
            known.setdefault(report.letter_id, []).append(report)
    return [known[letter_id] for letter_id in sorted(known)] + alone


def _tell_report(stories: Sequence[_Story], returned: Sequence[Report]) -> None:
    first, *_repeated = returned
    if first.letter_id is not None:
        possible = [story for story in stories if story.given.number < first.letter_id and not story.reported]
    else:
        possible = [
            story for story in stories if story.given.at <= first.at + SKEW and story.handled_at is None
        ]
    story = _chosen(possible)
    if story is None:
        return
    story.reported, story.letter_id = True, first.letter_id
    for report in returned:
        if report.handled:
            story.handled_at = report.at
        elif report.handled is not None:
            story.failed_at = report.at


def _was_another(story: _Story) -> bool:
    """Says so where this one of equal messages was taken for the one that died, until it was reported as
    handled."""
    return story.given.weak and story.handled_at is not None


def _tell_death(stories: Sequence[_Story], death: Death, *, fixed: bool) -> None:
    if fixed:
        possible = [story for story in stories if story.given.died_as == death.letter]
    else:
        possible = [story for story in stories if _may_have_died(story, death)]
    story = _chosen(possible)
    if story is not None:
        story.death = death


def _may_have_died(story: _Story, death: Death) -> bool:
    given = story.given
    if story.death is not None or given.died_as is not None or death.at < given.at:
        return False
    if death.number <= max(given.number, story.letter_id or given.number):
        return False
    # Another message of equal content may have died: only one that failed after its return can be this one.
    return not given.weak or (story.failed_at is not None and story.handled_at is None)


def _chosen(possible: Sequence[_Story]) -> _Story | None:
    """By id the newest replay that it can be; of equal messages the oldest, first of those that certainly
    left."""
    if not possible:
        return None
    if not possible[0].given.weak:
        return possible[-1]
    return next((story for story in possible if story.given.confirmed), possible[0])


def _outcome(story: _Story) -> MessageOutcome:
    if story.death is not None:
        return MessageOutcome("dead_again", story.death.at, story.death.letter, arrived=True)
    if story.handled_at is not None:
        return MessageOutcome("handled", story.handled_at, arrived=True)
    if story.failed_at is not None:
        return MessageOutcome("failed_again", story.failed_at, arrived=True)
    return MessageOutcome(arrived=story.reported)
