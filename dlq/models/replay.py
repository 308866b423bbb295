"""Giving dead letters back: a job, and from where to where each action moves."""

import uuid
from dataclasses import dataclass

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.jobs.engine import Job
from contract.names import ahead_queue, dead_letter_queue
from dlq.models.dead_letter import BIN_QUEUE, LetterState


class Action(models.TextChoices):
    """Holds what a job does with its dead letters: each is a move from one queue to another."""

    GIVE_BACK = "give_back", _("replay")
    REDIRECT = "redirect", _("redirect")
    DISCARD = "discard", _("discard")
    PUT_BACK = "put_back", _("restore from the trash")
    EDIT = "edit", _("edit and replay")


# What brings dead letters before agents.
DELIVERING = (Action.GIVE_BACK, Action.REDIRECT, Action.EDIT)


class Scope(models.TextChoices):
    ONE = "one", _("one message")
    SELECTION = "selection", _("selected messages")
    GROUP = "group", _("one group")
    MATCHING = "matching", _("all messages matching a filter")
    ALL = "all", _("all messages")


class JobState(models.TextChoices):
    AWAITING = "awaiting", _("awaiting approval")
    PLANNED = "planned", _("planned")
    RUNNING = "running", _("running")
    PAUSED = "paused", _("paused")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    STOPPED = "stopped", _("stopped automatically")
    CANCELLED = "cancelled", _("cancelled")


class InOrder(models.TextChoices):
    """Says where dead letters go that are replayed in the order of their publishing."""

    BEHIND = "behind", _("after the waiting messages")
    AHEAD = "ahead", _("before the waiting messages")


class HoldState(models.TextChoices):
    """Says how far a job is that goes ahead of what waits: `wanted`, nothing moves before the subscription
    delivers nothing any more; `held`; `ending`, it delivers again, and what was not handled follows behind;
    `over`."""

    WANTED = "wanted", _("hold pending")
    HELD = "held", _("held")
    ENDING = "ending", _("ending")
    OVER = "over", _("finished")


# What a worker may take up, and what holds its dead letters.
OPEN_JOBS = (JobState.PLANNED, JobState.RUNNING)
UNFINISHED_JOBS = (JobState.AWAITING, *OPEN_JOBS, JobState.PAUSED)


# In `ReplayJob.counts`: at least so many go, of a scope that was too large for its pre-flight.
AT_LEAST = "at_least"


class ReplayJob(Job):
    """One action on dead letters: `setting` is whose they are, `source_queue` where they lie, `target_queue`
    where they go (`target_key`: the setting that gets them, where it is one).

    `query` is the filter of the scopes `matching` and `group`, as in the address bar. `letters_up_to` freezes
    a scope that is not a list of dead letters: those that die after its pre-flight do not belong to it.
    `planned_to` is how far planning came: a number at the broker for the scope `all`, else a row.
    `planned_at` is set when all slices are written down: nothing moves before.

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
    it was not a person who paused it; `goes_on_all_the_same`: a person let it go on beside open consumers.

    `in_order`: each dead letter is a slice of its own, in the order of publishing. Those that go ahead of
    what waits hold the subscription from `held_at` to `hold_until` at most."""

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
    total = models.PositiveIntegerField(_("messages"), default=0)
    walking_since = models.DateTimeField(null=True, editable=False)
    walking_queue = models.CharField(max_length=300, blank=True, editable=False)
    walked = models.PositiveIntegerField(default=0, editable=False)
    skipped = models.JSONField(_("skipped"), default=dict)
    counts = models.JSONField(_("counts"), default=dict)
    per_second = models.FloatField(_("messages per second"), default=0)
    window_from = models.TimeField(_("not before"), null=True)
    window_until = models.TimeField(_("not after"), null=True)
    ladder = models.BooleanField(_("ladder"), default=False)
    ladder_percent = models.PositiveSmallIntegerField(_("stop threshold, %"), default=10)
    ladder_step = models.PositiveSmallIntegerField(_("ladder step"), default=0)
    ladder_counts = models.JSONField(null=True, editable=False)
    ladder_known_at = models.DateTimeField(null=True, editable=False)
    edit_rule = models.JSONField(_("edit rule"), default=dict)
    in_order = models.CharField(_("in order"), max_length=6, choices=InOrder.choices, blank=True, default="")
    hold_minutes = models.PositiveIntegerField(_("maximum hold time, minutes"), default=0)
    hold = models.CharField(max_length=6, choices=HoldState.choices, blank=True, default="", editable=False)
    held_at = models.DateTimeField(_("on hold since"), null=True, editable=False)
    hold_until = models.DateTimeField(_("held until"), null=True, editable=False)
    acknowledged = models.JSONField(_("warnings acknowledged"), default=list)
    needs_second = models.BooleanField(_("needs approval by a second person"), default=False)
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("approved by")
    )
    approved_at = models.DateTimeField(_("approved"), null=True)
    paused_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("paused by")
    )
    paused_at = models.DateTimeField(_("paused"), null=True)
    pause_reason = models.JSONField(_("pause reason"), default=dict)
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

    @property
    def is_counted(self) -> bool:
        """Returns whether `total` is exact: what was too much to be counted before is counted while it is
        planned. Until then at least so many go."""
        return self.planned_at is not None or AT_LEAST not in self.counts

    def __str__(self) -> str:
        return str(self.id)


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


def route(action: str, key: str, target_key: str = "", *, ahead: bool = False) -> Route:
    """Returns the route of the dead letters of setting `key`; `target_key` is asked for by a redirect only.
    `ahead`: of what waits in the subscription. Of an edited dead letter the copy is replayed, what moves is
    the original."""
    own = dead_letter_queue(key)
    if action == Action.PUT_BACK:
        return Route(BIN_QUEUE, own, LetterState.GONE)
    if action == Action.DISCARD:
        return Route(own, BIN_QUEUE, LetterState.DISCARDED)
    if action == Action.EDIT:
        return Route(own, BIN_QUEUE, LetterState.GIVEN_BACK)
    gets = target_key if action == Action.REDIRECT else key
    return Route(own, ahead_queue(gets) if ahead and gets else gets, LetterState.GIVEN_BACK)


def afterwards(action: str) -> LetterState:
    return route(action, "").afterwards
