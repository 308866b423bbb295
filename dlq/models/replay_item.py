"""The slices of a replay (one broker move each), and one item per dead letter."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dlq.models.replay import ReplayJob


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
    first_letter_id = models.BigIntegerField(_("first message"))
    last_letter_id = models.BigIntegerField(_("last message"))
    state = models.CharField(
        _("state"), max_length=10, choices=SliceState.choices, default=SliceState.PLANNED
    )
    size = models.PositiveIntegerField(_("messages"))
    step = models.PositiveSmallIntegerField(_("ladder step"), default=0)
    by_range = models.BooleanField(default=False, editable=False)
    first_number = models.BigIntegerField(null=True, editable=False)
    last_number = models.BigIntegerField(null=True, editable=False)
    count_before = models.BigIntegerField(_("messages in the queue before the move"), null=True)
    added_before = models.BigIntegerField(_("total messages added before the move"), null=True)
    left = models.IntegerField(_("messages that left the queue"), null=True)
    tries = models.PositiveSmallIntegerField(_("attempts"), default=0)
    moved = models.IntegerField(_("moved (broker count)"), null=True)
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
    GIVEN_BACK = "given_back", _("replayed")
    UNCONFIRMED = "unconfirmed", _("unconfirmed")
    TAKEN_ELSEWHERE = "taken_elsewhere", _("taken elsewhere")
    NOT_FOUND = "not_found", _("no longer in the queue")
    FAILED_TO_MOVE = "failed_to_move", _("could not be moved")
    SKIPPED = "skipped", _("skipped")
    CANCELLED = "cancelled", _("cancelled before the move")


class Outcome(models.TextChoices):
    """Holds what became of a dead letter after it left. `unknown`: nothing was heard of it within an hour;
    what arrives later takes its place."""

    WAITING = "", _("waiting")
    HANDLED = "handled", _("processed")
    FAILED_AGAIN = "failed_again", _("failed again")
    DEAD_AGAIN = "dead_again", _("dead-lettered again")
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
        verbose_name=_("dead-lettered message"),
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
    why = models.CharField(_("reason"), max_length=40, blank=True)
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
        verbose_name=_("dead-lettered again as"),
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
