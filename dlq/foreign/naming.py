"""Naming a foreign dead-letter queue, and forgetting it again. Nothing is changed at the broker: the sweep
walks the queue and brings its letters into the index, and marks them gone once the queue is forgotten.
"""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from broker.port import Management
from broker.rows import find
from console.audit.log import record
from contract.properties import HOLD
from contract.text import storable
from dlq.foreign.refusal import ForeignRefused
from dlq.models import LetterQueue

# Whoever may do this: to everything of foreign queues, for they are of no pool.
MANAGE = "dlq.manage_foreign"
# Each is walked once a day and counted every ten seconds.
MOST = 200
LONGEST_NOTE = LONGEST_NAME = 300
# Queues of brokers and of the MA itself that hold no letters.
NEVER = ("activemq.", "$sys.", "MA.reply.", f"{HOLD}.", "notif.")


def foreign_queues() -> QuerySet[LetterQueue]:
    return LetterQueue.objects.filter(foreign=True)


def key_problem(key: str) -> str | None:
    """Why no new setting can have this key: its subscription would have the name of a queue that is
    followed."""
    if not foreign_queues().filter(queue=key).exists():
        return None
    return _("A foreign dead-letter queue has this name: it is followed on the page “Foreign queues”.")


def name_queue(queue: str, note: str, *, by: Any, now: datetime, asked: Management) -> LetterQueue:
    """Raises ForeignRefused, BrokerError."""
    address = check(queue, asked)
    note = storable(note.strip())[:LONGEST_NOTE]
    values = {
        "address": address,
        "foreign": True,
        "note": note,
        "added_by": by,
        "added_at": now,
        "walked_at": None,
    }
    with transaction.atomic():
        known = LetterQueue.objects.select_for_update().filter(queue=queue).first()
        if known is not None and known.foreign:
            raise ForeignRefused("exists", _("This queue is followed already."))
        if foreign_queues().count() >= MOST:
            raise ForeignRefused(
                "too_many", _("No more than %(n)s foreign queues are followed.") % {"n": MOST}
            )
        try:
            row, _made = LetterQueue.objects.update_or_create(queue=queue, defaults=values)
        except IntegrityError as error:
            raise ForeignRefused("exists", _("This queue is followed already.")) from error
        record(
            "foreign_named", by=by, now=now, target=f"queue:{queue}", reason=note, detail={"address": address}
        )
    return row


def forget_queue(queue: str, *, by: Any, now: datetime, reason: str = "") -> None:
    """Its letters stay at the broker; the sweep marks their rows gone. Raises ForeignRefused."""
    with transaction.atomic():
        changed = foreign_queues().filter(queue=queue).update(foreign=False, note="")
        if not changed:
            raise ForeignRefused("unknown", _("This queue is not followed."))
        record("foreign_forgotten", by=by, now=now, target=f"queue:{queue}", reason=reason)


def check(queue: str, asked: Management) -> str:
    """The address of a queue that may be taken for a foreign dead-letter queue. Raises ForeignRefused,
    BrokerError."""
    if not queue or len(queue) > LONGEST_NAME or not queue.isprintable():
        raise ForeignRefused("invalid", _("This is no name of a queue."))
    found = find(asked, "listQueues", queue)
    if found is None:
        raise ForeignRefused(
            "unknown", _("The broker has no such queue."), _("Write its name exactly as the broker shows it.")
        )
    address = found["address"]
    if address == settings.MA_DLA_ADDRESS:
        raise ForeignRefused("own", _("This queue is one of the MA's own: it is followed anyway."))
    if queue.startswith(NEVER) or address.startswith(NEVER):
        raise ForeignRefused("internal", _("This queue serves the broker or the MA itself."))
    if LaunchSetting.objects.filter(key=queue).exists():
        raise ForeignRefused(
            "subscription", _("This is the queue of a launch setting: its messages are not dead.")
        )
    return address
