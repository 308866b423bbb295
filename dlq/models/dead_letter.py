"""The index of dead letters: one row per death of a message. The message itself is the broker's."""

from typing import Any

from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from contract.names import BIN, dead_letter_queue
from dlq.models.content import content_of, of_content

BIN_QUEUE = dead_letter_queue(BIN)


class LetterState(models.TextChoices):
    DEAD = "dead", _("dead-lettered")
    GIVEN_BACK = "given_back", _("replayed")
    GONE = "gone", _("gone")
    DISCARDED = "discarded", _("discarded")


IS_DEAD = models.Q(state=LetterState.DEAD.value)
HAS_LEFT = ~IS_DEAD


class DeadLetter(models.Model):
    """`orig_message_id` is the broker's id of the message before it died, the only one that the feed and the
    filters of a move see; ids are per broker (`node_id`) and one message has the same in every subscription
    (`queue`). A dead letter without one (somebody sent it here) has a negative number of ours, from its
    digest.

    `encoded`, `body_text`, `properties` and `annotations` are of its `content` (`LetterContent`);
    `truncated`: of the body only the head is kept, `problem`: it is no message that can be read. `seen_at` is
    when the feed saw it: dead since. `chapter` counts the deaths of the case. `fingerprint`,
    `exception_type`, `exception_text` (its beginning), `place`, `server_name`, `activation_uuid` and
    `agent_version` are copied from the last protocol with this key, which retention may delete; `protocol_at`
    is when that happened. `expires_at` is the producer's or the bin's word. `words_without` says what was
    masked when its words were put into the index of words (`dlq.search`); empty: they are not in it yet.
    `state_at` of one that is not dead is when it left its queue; by it retention deletes the body, says so in
    `body_deleted_at`, and later the row.
    """

    node_id = models.CharField(_("broker node"), max_length=60)
    queue = models.CharField(_("dead-letter queue"), max_length=300)
    orig_message_id = models.BigIntegerField(_("original broker id"))
    # Dead letters are found by their queue; only who removes a setting looks for them by this.
    setting = models.ForeignKey(
        "agents.LaunchSetting",
        models.SET_NULL,
        null=True,
        related_name="dead_letters",
        db_index=False,
        verbose_name=_("launch setting"),
    )
    setting_key = models.CharField(_("setting key"), max_length=300, blank=True)
    address = models.CharField(_("original address"), max_length=300, blank=True)
    orig_queue = models.CharField(_("original queue"), max_length=300, blank=True)
    message_key = models.CharField(_("message key"), max_length=255, blank=True)
    message_key_weak = models.BooleanField(_("message without an id"), default=False)
    message_id = models.TextField(_("message id"), blank=True)
    truncated = models.BooleanField(_("body truncated"), default=False)
    problem = models.TextField(_("problem"), blank=True)
    body_kind = models.CharField(_("body section"), max_length=10, blank=True)
    jms_kind = models.SmallIntegerField(_("JMS message type"), null=True)
    content_type = models.CharField(_("content type"), max_length=200, blank=True)
    size = models.BigIntegerField(_("size, bytes"), default=0)
    durable = models.BooleanField(_("durable"), default=True)
    priority = models.SmallIntegerField(_("priority"), default=4)
    correlation_id = models.TextField(_("correlation id"), blank=True)
    reply_to = models.TextField(_("reply to"), blank=True)
    created_at_producer = models.DateTimeField(_("published"), null=True)
    delivery_count = models.BigIntegerField(_("delivery count"), default=0)
    fingerprint = models.CharField(_("fingerprint"), max_length=64, blank=True)
    exception_type = models.CharField(_("exception type"), max_length=255, blank=True)
    # Of a person's data as much as a protocol's: whoever erases a message's clears this too.
    exception_text = models.TextField(_("text"), blank=True, default="")
    place = models.CharField(_("location"), max_length=300, blank=True)
    server_name = models.CharField(_("server"), max_length=63, blank=True)
    activation_uuid = models.UUIDField(_("activation id"), null=True)
    agent_version = models.CharField(_("agent version"), max_length=200, blank=True)
    protocol_at = models.DateTimeField(_("last failure"), null=True)
    expires_at = models.DateTimeField(_("expires"), null=True)
    seen_at = models.DateTimeField(_("in DLQ since"), default=timezone.now)
    state = models.CharField(_("state"), max_length=10, choices=LetterState.choices, default=LetterState.DEAD)
    state_at = models.DateTimeField(_("since"), default=timezone.now)
    chapter = models.PositiveIntegerField(_("DLQ occurrence"), default=1)
    body_deleted_at = models.DateTimeField(_("body deleted"), null=True)
    words_without = models.CharField(max_length=16, blank=True, default="", editable=False)

    class Meta:
        verbose_name = _("dead-lettered message")
        verbose_name_plural = _("dead letters")
        ordering = ("-id",)
        default_permissions = ("view",)
        permissions = [
            ("give_back", _("Can replay dead letters")),
            ("can_see_masked", _("Can see masked properties of dead letters")),
            ("edit_letters", _("Can edit and replay dead letters")),
            ("redirect", _("Can redirect dead letters to another setting")),
            ("redirect_elsewhere", _("Can redirect dead letters to settings with another destination")),
            ("discard", _("Can discard dead letters")),
            ("approve", _("Can approve requests of other users")),
            ("manage_foreign", _("Can manage other dead-letter queues")),
            ("handle_waiting", _("Can manage waiting messages")),
            ("import_letters", _("Can send imported messages to a setting")),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["node_id", "queue", "orig_message_id"], name="letter_once_per_death"
            )
        ]
        indexes = [
            models.Index(fields=["queue", "state", "id"], name="letters_of_queue"),
            models.Index(fields=["message_key", "setting_key"], name="letters_of_message"),
            models.Index(fields=["queue", "seen_at"], name="letters_by_time"),
            # Of what is dead now, which is what people look for. A state in the columns would cost each dead
            # letter that leaves a new entry in every index; of these it only leaves.
            models.Index(fields=["id"], condition=IS_DEAD, name="dead_letters"),
            models.Index(fields=["queue", "seen_at", "id"], condition=IS_DEAD, name="dead_by_time"),
            models.Index(
                fields=["queue", "fingerprint", "id"], condition=IS_DEAD, name="dead_by_fingerprint"
            ),
            models.Index(
                fields=["queue", "exception_type", "id"], condition=IS_DEAD, name="dead_by_exception"
            ),
            models.Index(fields=["queue", "server_name", "id"], condition=IS_DEAD, name="dead_by_server"),
            models.Index(
                fields=["queue", "activation_uuid", "id"], condition=IS_DEAD, name="dead_by_activation"
            ),
            # Few dead letters are in these two.
            models.Index(
                fields=["queue", "chapter", "id"],
                condition=IS_DEAD & models.Q(chapter__gt=1),
                name="dead_by_chapter",
            ),
            models.Index(
                fields=["setting_key", "id"],
                condition=IS_DEAD & models.Q(queue=BIN_QUEUE),
                name="dead_in_the_bin",
            ),
            models.Index(fields=["state_at", "id"], condition=HAS_LEFT, name="letters_by_leaving"),
            models.Index(
                fields=["state_at", "id"],
                condition=HAS_LEFT & models.Q(body_deleted_at=None),
                name="bodies_by_leaving",
            ),
            models.Index(fields=["id"], condition=models.Q(words_without=""), name="letters_without_words"),
        ]

    encoded = of_content("encoded")
    body_text = of_content("body_text")
    properties = of_content("properties")
    annotations = of_content("annotations")

    def __str__(self) -> str:
        return f"#{self.pk} {self.setting_key or self.queue}"

    def save(self, *args: Any, **how: Any) -> None:
        """Saves with its content. Many at once: `dlq.index.store`."""
        with transaction.atomic():
            content = content_of(self)
            super().save(*args, **how)
            if how.get("update_fields") is None:
                content.letter_id = self.pk
                content.save()

    @property
    def times_replayed(self) -> int:
        """Returns how often the message was replayed: after each death before this one, and after this one
        where it has left so. `dlq.search.conditions` asks the same of the columns."""
        return self.chapter - 1 + (self.state == LetterState.GIVEN_BACK)

    @property
    def is_in_trash(self) -> bool:
        """It is the row of a message that was moved into the trash and is there still: nobody has to do
        anything with it."""
        return self.queue == BIN_QUEUE and self.state == LetterState.DEAD

    @property
    def died_here(self) -> bool:
        """It came from a subscription, where else somebody moved it here from another dead-letter queue."""
        return self.orig_queue == self.setting_key


# -- what KMAs said about messages that were replayed --------------------------------------------------------


class LetterResult(models.TextChoices):
    HANDLED = "handled", _("processed")
    FAILED = "failed", _("failed again")


class LetterReport(models.Model):
    """One handling of a returned message. It may come before the replay knows that the dead letter left, so
    it is kept.

    `letter_id` is the broker's id of the message in the dead-letter queue: larger than the one it had before
    it died, smaller than the one that it has when it dies again.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    setting_key = models.CharField(_("setting key"), max_length=200)
    message_key = models.CharField(_("message key"), max_length=255)
    letter_queue = models.CharField(_("dead-letter queue"), max_length=300, blank=True)
    letter_id = models.BigIntegerField(_("broker id in the DLQ"), null=True)
    result = models.CharField(_("result"), max_length=10, choices=LetterResult.choices)
    server_name = models.CharField(_("server"), max_length=63)
    activation_uuid = models.UUIDField(_("activation id"))
    attempt = models.BigIntegerField(_("attempt"))
    occurred_at = models.DateTimeField(_("occurred"))
    received_at = models.DateTimeField(_("received"), default=timezone.now)
    # False: its server has no such run here (`failures.intake.rows`). Then it settles no replay.
    verified = models.BooleanField(_("verified"), default=True, db_default=True)

    class Meta:
        verbose_name = _("report on a replayed message")
        verbose_name_plural = _("reports on replayed messages")
        ordering = ("-occurred_at", "-id")
        default_permissions = ()
        indexes = [models.Index(fields=["message_key", "setting_key"], name="reports_of_message")]

    def __str__(self) -> str:
        return f"{self.message_key}: {self.result}"
