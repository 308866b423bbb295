"""Deliveries of a message that waited for an answer (CLIENT): events of its case file. One that was lost is
no failure and has no protocol, yet the broker may have counted it."""

from django.utils.translation import gettext as _

from agents.models import Acknowledgement, AcknowledgementState
from agents.pages.answers import STATES
from console.ui import amounts
from console.ui.page import link
from dlq.pages.events import Event

BOUND = 200


def events_of(key: str, setting_key: str) -> list[Event]:
    """By its JMS message id, which is the key of every message that has one."""
    rows = Acknowledgement.objects.filter(jms_message_id=key, setting__key=setting_key).select_related(
        "server"
    )
    return [_event(row) for row in rows.order_by("-created_at", "-id")[:BOUND]]


def _event(row: Acknowledgement) -> Event:
    shown, at = STATES[row.state], row.ended_at
    if at is None:
        what, url = _("Waits for an answer since attempt %(n)s"), link("answers")
    else:
        what, url = _("Waited for an answer since attempt %(n)s: %(state)s"), f"{link('answers')}?state=ended"
    facts = {"n": amounts.number(row.attempt), "state": shown.word}
    detail = " · ".join(filter(None, [row.server.name, str(row.reason)]))
    tone = "warn" if row.state == AcknowledgementState.LOST else shown.tone
    return Event(at or row.opened_at or row.created_at, tone, what % facts, detail, url)
