"""Describes what a dead letter holds, in tables of its own: what the index keeps of it, the whole that was
fetched, the copy that was edited."""

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.jobs.engine import Job


class LetterContent(models.Model):
    """One row per dead letter, written with it. Only who erases it or deletes its body changes it.

    `encoded` is the whole AMQP message, of a truncated dead letter one with only the head of its body, of an
    undecodable one the raw bytes. `body_text` is the head of the body as text; `properties` and `annotations`
    as `dlq.dead_letters.rules.parser` lists them. Of a body that retention deleted `encoded` and `body_text`
    are empty; the properties stay with the row."""

    letter = models.OneToOneField(
        "dlq.DeadLetter",
        models.CASCADE,
        primary_key=True,
        related_name="content",
        verbose_name=_("dead-lettered message"),
    )
    encoded = models.BinaryField()
    body_text = models.TextField(_("body"), blank=True)
    properties = models.JSONField(_("properties"), default=list)
    annotations = models.JSONField(_("annotations"), default=list)

    class Meta:
        verbose_name = _("message content")
        verbose_name_plural = _("message contents")
        default_permissions = ()

    def __str__(self) -> str:
        return f"#{self.pk}"


def of_content(name: str) -> Any:
    """A property of a dead letter that its content has."""

    def get(letter: Any) -> Any:
        return getattr(content_of(letter), name)

    def put(letter: Any, value: Any) -> None:
        setattr(content_of(letter), name, value)

    return property(get, put)


def content_of(letter: Any) -> LetterContent:
    """Made with a dead letter that is not stored yet, else read once."""
    known: LetterContent | None = letter._state.fields_cache.get("content")
    if known is not None:
        return known
    if letter._state.adding:
        return keep_content(letter, LetterContent())
    read: LetterContent = letter.content
    return read


def keep_content(letter: Any, content: LetterContent) -> LetterContent:
    letter._state.fields_cache["content"] = content
    return content


def with_heads(rows: models.QuerySet[Any], content: str = "content") -> models.QuerySet[Any]:
    """Returns them for lists: each dead letter with its `body_text`, and with nothing else of its content,
    which `content` leads to."""
    heavy = (f"{content}__{name}" for name in ("encoded", "properties", "annotations"))
    return rows.select_related(content).defer(*heavy)


# -- fetching the whole of a dead letter of which the index keeps only the head ------------------------------


class FetchState(models.TextChoices):
    ASKED = "asked", _("requested")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")
    DROPPED = "dropped", _("deleted")


OPEN_FETCHES = (FetchState.ASKED, FetchState.RUNNING)


class WholeFetch(Job):
    """One look through a queue for one dead letter. `letters` were in the queue when it was asked for, `seen`
    are read so far. A done one holds the whole AMQP message in `encoded` until it is dropped, a day later."""

    letter = models.ForeignKey(
        "dlq.DeadLetter", models.CASCADE, related_name="fetches", verbose_name=_("dead-lettered message")
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    by_name = models.CharField(_("by"), max_length=150, blank=True)
    at = models.DateTimeField(_("time"), default=timezone.now)
    state = models.CharField(_("state"), max_length=10, choices=FetchState.choices, default=FetchState.ASKED)
    ended_at = models.DateTimeField(_("ended"), null=True)
    tries = models.PositiveSmallIntegerField(_("attempts"), default=0)
    letters = models.BigIntegerField(_("messages in the queue"), default=0)
    seen = models.BigIntegerField(_("messages read"), default=0)
    encoded = models.BinaryField(null=True)

    class Meta:
        verbose_name = _("full-body fetch")
        verbose_name_plural = _("full-body fetches")
        ordering = ("-id",)
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["letter"],
                condition=models.Q(state__in=["asked", "running"]),
                name="one_open_fetch_per_letter",
            )
        ]
        indexes = [models.Index(fields=["state", "at"], name="fetches_by_state")]

    def __str__(self) -> str:
        return f"#{self.letter_id}: {self.state}"


# -- A dead letter that was edited: the copy that goes instead of it -----------------------------------------


class EditState(models.TextChoices):
    PLANNED = "planned", _("planned")
    SENT = "sent", _("sent")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


class LetterEdit(models.Model):
    """`encoded` is the whole edited AMQP message, written before anything is sent. `id` is its duplicate id
    at the broker, so sending it twice makes one. SENT: the broker has the copy; only then the original may
    leave its queue. `diff` is what people are shown: a list of {what, before, after}, texts. Retention
    empties both as it does a body, and says so in `body_deleted_at`."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    item = models.OneToOneField(
        "dlq.ReplayItem", models.CASCADE, related_name="edit", verbose_name=_("replay item")
    )
    encoded = models.BinaryField()
    diff = models.JSONField(_("changes"), default=list)
    state = models.CharField(_("state"), max_length=10, choices=EditState.choices, default=EditState.PLANNED)
    planned_at = models.DateTimeField(_("planned"), default=timezone.now)
    sent_at = models.DateTimeField(_("sent"), null=True)
    done_at = models.DateTimeField(_("done"), null=True)
    problem = models.TextField(_("problem"), blank=True)
    body_deleted_at = models.DateTimeField(_("body deleted"), null=True)

    class Meta:
        verbose_name = _("edited message")
        verbose_name_plural = _("edited messages")
        ordering = ("planned_at",)
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["planned_at", "id"],
                condition=models.Q(body_deleted_at=None),
                name="edits_by_planning",
            )
        ]

    def __str__(self) -> str:
        return str(self.id)
