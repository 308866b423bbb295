"""Deliveries that wait for an answer on a server that is not heard any more, and whose message the broker has
delivered again since: the first delivery is gone, whatever becomes of its server.

Two messages with the same JMS message id are taken for one here. Then an answer to the first is refused
though its server may still hold it; it gives the message back when it ends or its time is over: nothing is
lost.
"""

from datetime import datetime

from django.db.models import Exists, OuterRef

from agents.models import WAITING_STATES, Acknowledgement, AcknowledgementState, Server
from agents.models.server import lost_before
from agents.reasons import DELIVERED_AGAIN
from agents.services.hearing import silence_counts

MOST_AT_ONCE = 500


def lose_redelivered(now: datetime) -> int:
    """How many wait no longer. What their server says later of them changes nothing."""
    if not silence_counts(now):
        return 0
    silent = Server.objects.filter(last_seen_at__lte=lost_before(now))
    again = Acknowledgement.objects.filter(
        jms_message_id=OuterRef("jms_message_id"), setting=OuterRef("setting"), pk__gt=OuterRef("pk")
    ).exclude(server=OuterRef("server"))
    waiting = Acknowledgement.objects.filter(ended_at=None, state__in=WAITING_STATES)
    gone = waiting.filter(server__in=silent).exclude(jms_message_id="").filter(Exists(again))
    found = list(gone.values_list("pk", flat=True)[:MOST_AT_ONCE])
    return waiting.filter(pk__in=found).update(
        state=AcknowledgementState.LOST, reason=DELIVERED_AGAIN(), ended_at=now
    )
