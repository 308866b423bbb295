"""Describes what people do with a dead-letter queue of others: follow it, and no longer."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from console.broker import management
from console.operations.inputs import TextInput
from console.operations.operation import Act, Done, ModelPermission, Operation
from console.operations.resource import Resource
from console.ui.page import link
from dlq.models import LetterQueue
from dlq.queues.foreign import LONGEST_NOTE, MANAGE, foreign_queues, forget_queue, name_queue
from dlq.search.visibility import SEE_ALL


class _ForeignQueues(Resource[LetterQueue]):
    """They have no page but their list."""

    def __post_init__(self) -> None:
        """Names no object that an entry of the audit could lead to."""

    def target(self, row: LetterQueue) -> str:
        """Its row goes when it is not followed any more."""
        return f"queue:{row.queue}"

    def url(self, row: LetterQueue) -> str:
        return link(self.list_page)


FOREIGN_QUEUES = _ForeignQueues(
    name="foreign_queue",
    rows=lambda: foreign_queues().select_related("added_by"),
    key="pk",
    route="foreign-queues/<int:pk>/",
    view=SEE_ALL,
    list_page="foreign_queues",
    title=_("Foreign dead-letter queues"),
)


class _OfForeignQueue(Operation[LetterQueue]):
    on = FOREIGN_QUEUES
    permission = ModelPermission(MANAGE, _("Can manage foreign dead-letter queues"))
    immediate = True


class FollowQueue(_OfForeignQueue):
    """A row that is not stored yet names it; the reason is its note."""

    code, label = "foreign_queue.follow", _("Follow")
    inputs = {"reason": TextInput(_("Whose it is, and what for"), LONGEST_NOTE)}

    def run(self, row: LetterQueue, act: Act, **inputs: Any) -> Done:
        followed = name_queue(row.queue, management(), act)
        return Done(_("It is followed now. Its letters are in the lists after the next walk."), followed)


class UnfollowQueue(_OfForeignQueue):
    """Its dead letters stay at the broker."""

    code, label = "foreign_queue.unfollow", _("Do not follow")
    address = f"{FOREIGN_QUEUES.route}forget/"

    def run(self, row: LetterQueue, act: Act, **inputs: Any) -> Done:
        forget_queue(row.queue, act)
        return Done(_("It is not followed any more. Its letters stay at the broker."))
