"""Describes what people do with a dead-letter queue of others: follow it, and no longer. Nothing is changed
at the broker: the sweep walks the queue and brings its dead letters into the index, and marks them gone once
it is not followed any more."""

from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.models import LaunchSetting
from broker.management.queues import find
from broker.port import Management
from console.broker import management
from console.operations.inputs import TextInput
from console.operations.operation import Act, Done, ModelPermission, Operation, Resource
from console.operations.refusals import Refused, WronglyAsked
from console.ui.page import link
from contract.names import HOLD, subscription_of
from contract.typed import storable
from dlq.models import LetterQueue
from dlq.search.visibility import SEE_ALL

# Whoever may do this: to everything of foreign queues, for they are of no pool.
MANAGE = "dlq.manage_foreign"
# Each is walked once a day and counted every ten seconds.
MOST = 200
LONGEST_NOTE = LONGEST_NAME = 300
# Queues of brokers and of the MA itself that hold no dead letters.
NEVER = ("activemq.", "$sys.", "MA.reply.", f"{HOLD}.", "notif.")


def foreign_queues() -> QuerySet[LetterQueue]:
    return LetterQueue.objects.filter(foreign=True)


def key_problem(key: str) -> str | None:
    """Returns why no new setting can have this key: its subscription would have the name of a queue that is
    followed."""
    if not foreign_queues().filter(queue=key).exists():
        return None
    return gettext(
        "This key is not available: a monitored queue on the page “Other dead-letter queues” "
        "has this name. Choose another key."
    )


def name_queue(queue: str, asked: Management, act: Act) -> LetterQueue:
    """The reason of `act` is its note. Raises Refused, BrokerError."""
    address = check_foreign_queue(queue, asked)
    values = {
        "address": address,
        "foreign": True,
        "note": storable(act.reason.strip())[:LONGEST_NOTE],
        "added_by": act.by,
        "added_at": act.now,
        "walked_at": None,
    }
    with transaction.atomic():
        known = LetterQueue.objects.select_for_update().filter(queue=queue).first()
        if known is not None and known.foreign:
            raise _exists()
        if foreign_queues().count() >= MOST:
            raise Refused(
                "too_many",
                gettext(
                    "The queue was not added: the limit is %(n)s queues under “Other dead-letter queues”. "
                    "Stop monitoring one of them first."
                )
                % {"n": MOST},
            )
        try:
            row, _made = LetterQueue.objects.update_or_create(queue=queue, defaults=values)
        except IntegrityError as error:
            raise _exists() from error
        act.record(address=address)
    return row


def _exists() -> Refused:
    return Refused("exists", gettext("The queue was not added: it is already monitored."))


def forget_queue(queue: str, act: Act) -> None:
    """Its dead letters stay at the broker; the sweep marks their rows gone. Raises Refused."""
    with transaction.atomic():
        if not foreign_queues().filter(queue=queue).update(foreign=False, note=""):
            raise WronglyAsked("unknown", gettext("This queue is not monitored."))
        act.record()


def check_foreign_queue(queue: str, asked: Management) -> str:
    """The address of a queue that may be taken for a foreign dead-letter queue. Raises Refused,
    BrokerError."""
    if not queue or len(queue) > LONGEST_NAME or not queue.isprintable():
        raise WronglyAsked(
            "invalid", gettext("The queue name is invalid. Enter the name as the broker shows it.")
        )
    found = find(asked, "listQueues", queue)
    if found is None:
        raise WronglyAsked(
            "unknown",
            gettext("The broker has no such queue."),
            gettext("Enter its name exactly as the broker shows it."),
        )
    address = found["address"]
    if address == settings.MA_DLA_ADDRESS:
        raise Refused(
            "own", gettext("The queue was not added: it belongs to the MA and is already monitored.")
        )
    if queue.startswith(NEVER) or address.startswith(NEVER):
        raise Refused(
            "internal",
            gettext(
                "The queue was not added: it is an internal queue of the broker or the MA. Choose "
                "another queue."
            ),
        )
    if LaunchSetting.objects.filter(key=subscription_of(queue)).exists():
        raise Refused(
            "subscription",
            gettext(
                "The queue was not added: it belongs to a launch setting and holds no dead letters. "
                "Choose another queue."
            ),
        )
    return address


# -- operations ----------------------------------------------------------------------------------------------


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
    title=_("Other dead-letter queues"),
)


class _OfForeignQueue(Operation[LetterQueue]):
    on = FOREIGN_QUEUES
    permission = ModelPermission(MANAGE, _("Can manage other dead-letter queues"))
    immediate = True


class FollowQueue(_OfForeignQueue):
    """Adds another dead-letter queue to the index. A row that is not stored yet names it; the reason is its
    note."""

    code, label = "foreign_queue.follow", _("Monitor")
    inputs = {"reason": TextInput(_("Queue owner and purpose"), LONGEST_NOTE)}

    def run(self, row: LetterQueue, act: Act, **inputs: Any) -> Done:
        followed = name_queue(row.queue, management(), act)
        return Done(
            _("The queue is now monitored. Its messages appear in the lists after its next scan."), followed
        )


class UnfollowQueue(_OfForeignQueue):
    """Removes a queue from the index; its messages stay on the broker."""

    code, label = "foreign_queue.unfollow", _("Stop monitoring")
    address = f"{FOREIGN_QUEUES.route}forget/"

    def run(self, row: LetterQueue, act: Act, **inputs: Any) -> Done:
        forget_queue(row.queue, act)
        return Done(_("The queue is no longer monitored. Its messages stay on the broker."))
