"""Giving dead letters back: a job, its slices (one broker move each), and one item per dead letter."""

import uuid
from dataclasses import dataclass

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.jobs.job import Job
from contract.names import dead_letter_queue
from dlq.models.dead_letter import BIN_QUEUE, LetterState


class Action(models.TextChoices):
    """Holds what a job does with its dead letters: each is a move from one queue to another."""

    GIVE_BACK = "give_back", _("give back")
    REDIRECT = "redirect", _("redirect")
    DISCARD = "discard", _("discard")
    PUT_BACK = "put_back", _("put back from the bin")
    EDIT = "edit", _("edit and give back")


# What brings dead letters before agents.
DELIVERING = (Action.GIVE_BACK, Action.REDIRECT, Action.EDIT)


class Scope(models.TextChoices):
    ONE = "one", _("one letter")
    SELECTION = "selection", _("selected letters")
    GROUP = "group", _("a group")
    MATCHING = "matching", _("all that match a filter")
    ALL = "all", _("all letters of the setting")


class JobState(models.TextChoices):
    AWAITING = "awaiting", _("waits for a second person")
    PLANNED = "planned", _("planned")
    RUNNING = "running", _("running")
    PAUSED = "paused", _("paused")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    STOPPED = "stopped", _("stopped by itself")
    CANCELLED = "cancelled", _("cancelled")


# What a worker may take up, and what holds its dead letters.
OPEN_JOBS = (JobState.PLANNED, JobState.RUNNING)
UNFINISHED_JOBS = (JobState.AWAITING, *OPEN_JOBS, JobState.PAUSED)


class ReplayJob(Job):
    """One action on dead letters: `setting` is whose they are, `source_queue` where they lie, `target_queue`
    where they go (`target_key`: the setting that gets them, where it is one).

    `query` is the filter of the scopes `matching` and `group`, as in the address bar. `letters_up_to` freezes
    a scope that is not a list of dead letters: those that die later do not belong to it. `planned_to` is how
    far planning came: a number at the broker for the scope `all`, else a row. `planned_at` is set when all
    slices are written down: nothing moves before.

    `per_second` 0 = as fast as the broker. `window_from`/`window_until`: local times of day between which
    dead letters move (None: always). A `ladder` moves 1, 5, 25, 125, … dead letters, waits after each step
    for what becomes of them, and stops by itself when more than `ladder_percent` of a step fail again;
    `ladder_step` is the step at hand, `ladder_counts` the failures in a row of each run when it began (None:
    it has not begun), `ladder_known_at` when every outcome of it was here. `skipped` counts by reason what
    the scope held and was left out. `counts` are the dead letters by state and outcome, kept by those who
    change them. `outcomes_ended_at`: since then none of its dead letters waits for an outcome. `wait_reason`
    says why an open job does nothing at the moment; a lease beside it is a pause. A job that walks a queue is
    at work, so it has no such reason: `walking_since`, `walking_queue` and `walked`, the messages seen so
    far, say so. `stopping_since`: since when it waits for the consumers of a disabled setting to close, or
    for what blocks the setting of another destination; `pause_reason` is the code with its parameters where
    it was not a person who paused it; `goes_on_all_the_same`: a person let it go on beside open consumers."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    setting = models.ForeignKey(
        "agents.LaunchSetting",
        models.SET_NULL,
        null=True,
        related_name="replays",
        verbose_name=_("launch setting"),
    )
    setting_key = models.CharField(_("setting key"), max_length=61)
    action = models.CharField(_("action"), max_length=10, choices=Action.choices, default=Action.GIVE_BACK)
    source_queue = models.CharField(_("from queue"), max_length=300, blank=True)
    target_queue = models.CharField(_("to queue"), max_length=300, blank=True)
    target_key = models.CharField(_("to setting"), max_length=61, blank=True)
    scope = models.CharField(_("scope"), max_length=10, choices=Scope.choices)
    query = models.TextField(_("filter"), blank=True)
    reason = models.TextField(_("reason"), blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    state = models.CharField(_("state"), max_length=10, choices=JobState.choices, default=JobState.PLANNED)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    started_at = models.DateTimeField(_("started"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)
    total = models.PositiveIntegerField(_("letters"), default=0)
    walking_since = models.DateTimeField(null=True, editable=False)
    walking_queue = models.CharField(max_length=300, blank=True, editable=False)
    walked = models.PositiveIntegerField(default=0, editable=False)
    skipped = models.JSONField(_("skipped"), default=dict)
    counts = models.JSONField(_("counts"), default=dict)
    per_second = models.FloatField(_("letters a second"), default=0)
    window_from = models.TimeField(_("not before"), null=True)
    window_until = models.TimeField(_("not after"), null=True)
    ladder = models.BooleanField(_("ladder"), default=False)
    ladder_percent = models.PositiveSmallIntegerField(_("stops above, %"), default=10)
    ladder_step = models.PositiveSmallIntegerField(_("step of the ladder"), default=0)
    ladder_counts = models.JSONField(null=True, editable=False)
    ladder_known_at = models.DateTimeField(null=True, editable=False)
    edit_rule = models.JSONField(_("edit rule"), default=dict)
    acknowledged = models.JSONField(_("warnings acknowledged"), default=list)
    needs_second = models.BooleanField(_("needs a second person"), default=False)
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("approved by")
    )
    approved_at = models.DateTimeField(_("approved"), null=True)
    paused_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("paused by")
    )
    paused_at = models.DateTimeField(_("paused"), null=True)
    pause_reason = models.JSONField(_("paused because"), default=dict)
    stopping_since = models.DateTimeField(null=True, editable=False)
    goes_on_all_the_same = models.BooleanField(default=False, editable=False)
    letters_up_to = models.BigIntegerField(null=True, editable=False)
    planned_to = models.BigIntegerField(null=True, editable=False)
    planned_at = models.DateTimeField(_("planned"), null=True)
    outcomes_ended_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("replay")
        verbose_name_plural = _("replays")
        ordering = ("-created_at", "-id")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["setting_key"],
                condition=models.Q(scope="all", state__in=["awaiting", "planned", "running", "paused"]),
                name="one_replay_of_all_per_setting",
            )
        ]
        indexes = [
            models.Index(fields=["setting_key", "-created_at"], name="replays_of_setting"),
            models.Index(
                fields=["created_at"],
                condition=models.Q(state__in=["awaiting", "planned", "running", "paused"]),
                name="open_replays",
            ),
            models.Index(
                fields=["created_at"],
                condition=models.Q(outcomes_ended_at=None),
                name="replays_without_outcomes",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class SliceState(models.TextChoices):
    PLANNED = "planned", _("planned")
    MOVED = "moved", _("moved")
    CHECKED = "checked", _("checked")


class ReplaySlice(models.Model):
    """`moved` is what the broker answered to the last try (None: nothing). `moved_exactly` is how many of its
    dead letters our moves took, over all tries; None: one was not answered, or the broker may have forgotten
    one. `count_before` and `added_before` are the queue's exact figures before its first move: with the
    figures after it they say how many dead letters left. `left` is how many left by these figures (None:
    unknown). `by_range`: the move names the ids from `first_number` to `last_number`, else each one.
    `seen_before`: planning knew that its dead letters lay in the queue."""

    job = models.ForeignKey(ReplayJob, models.CASCADE, related_name="slices", verbose_name=_("replay"))
    number = models.PositiveIntegerField(_("number"))
    first_letter_id = models.BigIntegerField(_("first letter"))
    last_letter_id = models.BigIntegerField(_("last letter"))
    state = models.CharField(
        _("state"), max_length=10, choices=SliceState.choices, default=SliceState.PLANNED
    )
    size = models.PositiveIntegerField(_("letters"))
    step = models.PositiveSmallIntegerField(_("step of the ladder"), default=0)
    by_range = models.BooleanField(default=False, editable=False)
    first_number = models.BigIntegerField(null=True, editable=False)
    last_number = models.BigIntegerField(null=True, editable=False)
    count_before = models.BigIntegerField(_("letters in the queue before"), null=True)
    added_before = models.BigIntegerField(_("letters ever added before"), null=True)
    left = models.IntegerField(_("letters that left"), null=True)
    tries = models.PositiveSmallIntegerField(_("tries"), default=0)
    moved = models.IntegerField(_("moved, says the broker"), null=True)
    moved_exactly = models.IntegerField(default=0, null=True, editable=False)
    seen_before = models.BooleanField(default=True, editable=False)
    planned_at = models.DateTimeField(_("planned"), default=timezone.now)
    moved_at = models.DateTimeField(_("moved"), null=True)
    checked_at = models.DateTimeField(_("checked"), null=True)

    class Meta:
        verbose_name = _("replay slice")
        verbose_name_plural = _("replay slices")
        ordering = ("job", "number")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="slice_once_per_job")]

    def __str__(self) -> str:
        return f"{self.job_id} / {self.number}"


class ItemState(models.TextChoices):
    """`given_back`: our move took the dead letter. `unconfirmed`: it left, and nobody knows yet whether by
    our move. `taken_elsewhere`: it was there, and another consumer took it. `not_found`: it was gone before,
    or expired."""

    PLANNED = "planned", _("planned")
    GIVEN_BACK = "given_back", _("given back")
    UNCONFIRMED = "unconfirmed", _("unconfirmed")
    TAKEN_ELSEWHERE = "taken_elsewhere", _("taken elsewhere")
    NOT_FOUND = "not_found", _("was not there any more")
    FAILED_TO_MOVE = "failed_to_move", _("could not be moved")
    SKIPPED = "skipped", _("left out")
    CANCELLED = "cancelled", _("cancelled before it was moved")


class Outcome(models.TextChoices):
    """Holds what became of a dead letter after it left. `unknown`: nothing was heard of it within an hour;
    what arrives later takes its place."""

    WAITING = "", _("waiting")
    HANDLED = "handled", _("handled")
    FAILED_AGAIN = "failed_again", _("failed again")
    DEAD_AGAIN = "dead_again", _("dead again")
    UNKNOWN = "unknown", _("unknown")


# While an item is this, no other one may have its dead letter. A death ends once: what was replayed and dies
# again is another dead letter.
HOLDING = (ItemState.PLANNED.value, ItemState.GIVEN_BACK.value)


class ReplayItem(models.Model):
    """`died_as` is the dead letter that the message became when it died again. `why` is a stable word: why it
    was left out or could not be moved.

    `released_as` is the state of an item that let its dead letter go, empty while it holds it. It stands in
    the indexes in place of the state, so that the one step which every item makes, from planned to given
    back, changes none of them: PostgreSQL writes the new row beside the old one then. What is planned still
    is found by `planned_of`."""

    # The indexes below begin with each of these; a slice is of the item's job, whose constraint is enough.
    job = models.ForeignKey(
        ReplayJob, models.CASCADE, related_name="items", db_index=False, verbose_name=_("replay")
    )
    letter = models.ForeignKey(
        "dlq.DeadLetter",
        models.CASCADE,
        related_name="replays",
        db_index=False,
        verbose_name=_("dead letter"),
    )
    slice = models.ForeignKey(
        ReplaySlice,
        models.CASCADE,
        null=True,
        related_name="items",
        db_index=False,
        db_constraint=False,
        verbose_name=_("slice"),
    )
    state = models.CharField(_("state"), max_length=15, choices=ItemState.choices, default=ItemState.PLANNED)
    state_at = models.DateTimeField(_("since"), default=timezone.now)
    why = models.CharField(_("why"), max_length=40, blank=True)
    outcome = models.CharField(
        _("outcome"), max_length=15, choices=Outcome.choices, default=Outcome.WAITING, blank=True
    )
    outcome_at = models.DateTimeField(_("outcome known"), null=True)
    died_as = models.ForeignKey(
        "dlq.DeadLetter",
        models.SET_NULL,
        null=True,
        related_name="+",
        db_index=False,
        verbose_name=_("died again as"),
    )
    released_as = models.GeneratedField(
        expression=models.Case(
            models.When(state__in=HOLDING, then=models.Value("")), default=models.F("state")
        ),
        output_field=models.CharField(max_length=15),
        db_persist=True,
    )

    class Meta:
        verbose_name = _("replay item")
        verbose_name_plural = _("replay items")
        ordering = ("id",)
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["letter", "job"], name="item_once_per_job"),
            models.UniqueConstraint(
                fields=["letter"],
                condition=models.Q(released_as=""),
                name="one_outstanding_replay_per_letter",
            ),
            models.UniqueConstraint(
                fields=["died_as"], condition=models.Q(died_as__isnull=False), name="one_replay_per_death"
            ),
        ]
        indexes = [
            models.Index(fields=["job", "released_as", "outcome", "id"], name="items_by_outcome"),
            models.Index(fields=["slice", "job", "letter"], name="items_of_slice"),
        ]

    def __str__(self) -> str:
        return f"{self.job_id}: {self.letter_id}"


# -- from which queue to which one each action moves ---------------------------------------------------------


# What puts dead letters into the subscription of a setting, where an agent gets them.
TO_A_SUBSCRIPTION = (Action.GIVE_BACK, Action.REDIRECT)
# What puts dead letters into another dead-letter queue, where they get rows of their own.
TO_A_DEAD_LETTER_QUEUE = (Action.DISCARD, Action.PUT_BACK, Action.EDIT)


@dataclass(frozen=True, slots=True)
class Route:
    """`afterwards` is the state of a dead letter that left `source`."""

    source: str
    target: str
    afterwards: LetterState


def route(action: str, key: str, target_key: str = "") -> Route:
    """Returns the route of the dead letters of setting `key`; `target_key` is asked for by a redirect only.
    Of an edited dead letter the copy is replayed, what moves is the original."""
    own = dead_letter_queue(key)
    if action == Action.PUT_BACK:
        return Route(BIN_QUEUE, own, LetterState.GONE)
    if action == Action.DISCARD:
        return Route(own, BIN_QUEUE, LetterState.DISCARDED)
    if action == Action.EDIT:
        return Route(own, BIN_QUEUE, LetterState.GIVEN_BACK)
    return Route(own, target_key if action == Action.REDIRECT else key, LetterState.GIVEN_BACK)


def afterwards(action: str) -> LetterState:
    return route(action, "").afterwards
