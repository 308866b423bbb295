"""Naming a foreign dead-letter queue, and forgetting it again. Nothing is changed at the broker: the sweep
walks the queue and brings its dead letters into the index, and marks them gone once the queue is forgotten.
"""

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from broker.management.queues import find
from broker.port import Management
from console.operations.operation import Act
from console.operations.refusals import Refused, WronglyAsked
from contract.names import HOLD
from contract.text import storable
from dlq.models import LetterQueue

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
    return _("A foreign dead-letter queue has this name: it is followed on the page “Foreign queues”.")


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
            raise Refused("too_many", _("No more than %(n)s foreign queues are followed.") % {"n": MOST})
        try:
            row, _made = LetterQueue.objects.update_or_create(queue=queue, defaults=values)
        except IntegrityError as error:
            raise _exists() from error
        act.record(address=address)
    return row


def _exists() -> Refused:
    return Refused("exists", _("This queue is followed already."))


def forget_queue(queue: str, act: Act) -> None:
    """Its dead letters stay at the broker; the sweep marks their rows gone. Raises Refused."""
    with transaction.atomic():
        if not foreign_queues().filter(queue=queue).update(foreign=False, note=""):
            raise WronglyAsked("unknown", _("This queue is not followed."))
        act.record()


def check_foreign_queue(queue: str, asked: Management) -> str:
    """The address of a queue that may be taken for a foreign dead-letter queue. Raises Refused,
    BrokerError."""
    if not queue or len(queue) > LONGEST_NAME or not queue.isprintable():
        raise WronglyAsked("invalid", _("This is no name of a queue."))
    found = find(asked, "listQueues", queue)
    if found is None:
        raise WronglyAsked(
            "unknown", _("The broker has no such queue."), _("Write its name exactly as the broker shows it.")
        )
    address = found["address"]
    if address == settings.MA_DLA_ADDRESS:
        raise Refused("own", _("This queue is one of the MA's own: it is followed anyway."))
    if queue.startswith(NEVER) or address.startswith(NEVER):
        raise Refused("internal", _("This queue serves the broker or the MA itself."))
    if LaunchSetting.objects.filter(key=queue).exists():
        raise Refused("subscription", _("This is the queue of a launch setting: its messages are not dead."))
    return address
