"""What a dead letter holds, in a table of its own: its fate is written again and again, and found by the
million, without the bytes of the message."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _


class LetterContent(models.Model):
    """One row per letter, written with it. Only who erases it or deletes its body changes it.

    `encoded` is the whole AMQP message, of a truncated letter one with only the head of its body, of an
    undecodable one the raw bytes. `body_text` is the head of the body as text; `properties` and `annotations`
    as `dlq.dead_letters.rules.parsing` lists them. Of a body that retention deleted `encoded` and `body_text`
    are empty; the properties stay with the row."""

    letter = models.OneToOneField(
        "dlq.DeadLetter",
        models.CASCADE,
        primary_key=True,
        related_name="content",
        verbose_name=_("dead letter"),
    )
    encoded = models.BinaryField()
    body_text = models.TextField(_("body"), blank=True)
    properties = models.JSONField(_("properties"), default=list)
    annotations = models.JSONField(_("annotations"), default=list)

    class Meta:
        verbose_name = _("content of a dead letter")
        verbose_name_plural = _("contents of dead letters")
        default_permissions = ()

    def __str__(self) -> str:
        return f"#{self.pk}"


def of_content(name: str) -> Any:
    """A property of a letter that its content has."""

    def get(letter: Any) -> Any:
        return getattr(content_of(letter), name)

    def put(letter: Any, value: Any) -> None:
        setattr(content_of(letter), name, value)

    return property(get, put)


def content_of(letter: Any) -> LetterContent:
    """Made with a letter that is not stored yet, else read once."""
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


def with_heads(letters: models.QuerySet[Any]) -> models.QuerySet[Any]:
    """For lists: each with its `body_text`, and with nothing else of its content."""
    return letters.select_related("content").defer(
        "content__encoded", "content__properties", "content__annotations"
    )
