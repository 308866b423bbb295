"""How the states of letters and replays look."""

from django.utils.translation import gettext_lazy as _

from console.ui.labels import Shown
from dlq.models import ItemState, JobState, LetterState, Outcome

BODY_DELETED = _(
    "Retention deleted the body some time after the message left its queue. Its properties and its case file "
    "stay."
)

LETTERS: dict[str, Shown] = {
    LetterState.DEAD: Shown(LetterState.DEAD.label, "bad", "letter"),
    LetterState.GIVEN_BACK: Shown(LetterState.GIVEN_BACK.label, "info", "back"),
    LetterState.GONE: Shown(LetterState.GONE.label, "off", "off"),
    LetterState.DISCARDED: Shown(LetterState.DISCARDED.label, "off", "trash"),
}
JOBS: dict[str, Shown] = {
    JobState.AWAITING: Shown(JobState.AWAITING.label, "warn", "person"),
    JobState.PAUSED: Shown(JobState.PAUSED.label, "warn", "pause"),
    JobState.STOPPED: Shown(JobState.STOPPED.label, "bad", "warn"),
    JobState.PLANNED: Shown(JobState.PLANNED.label, "info", "wait"),
    JobState.RUNNING: Shown(JobState.RUNNING.label, "info", "run"),
    JobState.DONE: Shown(JobState.DONE.label, "ok", "ok"),
    JobState.FAILED: Shown(JobState.FAILED.label, "bad", "bad"),
    JobState.CANCELLED: Shown(JobState.CANCELLED.label, "off", "off"),
}
ITEMS: dict[str, Shown] = {
    ItemState.PLANNED: Shown(ItemState.PLANNED.label, "info", "wait"),
    ItemState.GIVEN_BACK: Shown(ItemState.GIVEN_BACK.label, "info", "back"),
    ItemState.UNCONFIRMED: Shown(ItemState.UNCONFIRMED.label, "warn", "wait"),
    ItemState.TAKEN_ELSEWHERE: Shown(ItemState.TAKEN_ELSEWHERE.label, "warn", "off"),
    ItemState.NOT_FOUND: Shown(ItemState.NOT_FOUND.label, "warn", "warn"),
    ItemState.FAILED_TO_MOVE: Shown(ItemState.FAILED_TO_MOVE.label, "bad", "bad"),
    ItemState.SKIPPED: Shown(ItemState.SKIPPED.label, "off", "mute"),
    ItemState.CANCELLED: Shown(ItemState.CANCELLED.label, "off", "off"),
}
OUTCOMES: dict[str, Shown] = {
    Outcome.WAITING: Shown(Outcome.WAITING.label, "off", "wait"),
    Outcome.HANDLED: Shown(Outcome.HANDLED.label, "ok", "ok"),
    Outcome.FAILED_AGAIN: Shown(Outcome.FAILED_AGAIN.label, "warn", "warn"),
    Outcome.DEAD_AGAIN: Shown(Outcome.DEAD_AGAIN.label, "bad", "letter"),
    Outcome.UNKNOWN: Shown(Outcome.UNKNOWN.label, "warn", "warn"),
}
