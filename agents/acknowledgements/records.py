"""Describes what servers say of deliveries that wait for an answer. Called inside the intake's transaction: a
record that comes again, also under another number, changes nothing.

A spool tells that a delivery was left open before it tells its end; an answer may come before both.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

import structlog
from django.db.models import Q

from agents.models import WAITING_STATES, Acknowledgement, LaunchSetting, Server
from agents.models.acknowledgement import LONGEST_JMS_ID
from console.reasons import NO_REASON, Reason
from contract.records import AcknowledgementEnded, AcknowledgementOpened
from contract.text import storable

log = structlog.get_logger(__name__)

Told = AcknowledgementOpened | AcknowledgementEnded
LARGEST_ATTEMPT = 2**31 - 1


def known_records(ids: Collection[UUID]) -> set[UUID]:
    """Those of these records that are stored."""
    rows = Acknowledgement.objects.filter(Q(opened_record__in=ids) | Q(ended_record__in=ids))
    stored = {record for row in rows.values_list("opened_record", "ended_record") for record in row}
    return {record for record in ids if record in stored}


def accept(server: Server, told: Sequence[tuple[UUID, Told]], now: datetime) -> None:
    """(id of the record, what it says), in the order of the spool."""
    keys = {content.run.setting for _, content in told}
    settings = LaunchSetting.objects.in_bulk(keys, field_name="key")
    opened = [(record, content) for record, content in told if isinstance(content, AcknowledgementOpened)]
    rows = [
        _row(server, settings[content.run.setting], record, content, now)
        for record, content in opened
        if content.run.setting in settings
    ]
    Acknowledgement.objects.bulk_create(rows, ignore_conflicts=True)
    # Who answered by the id alone has made the row.
    unopened = Acknowledgement.objects.filter(
        acknowledgement__in=[row.acknowledgement for row in rows], server=server, opened_record=None
    )
    made = set(unopened.values_list("acknowledgement", flat=True)) if rows else set()
    for row in rows:
        if row.acknowledgement in made:
            unopened.filter(acknowledgement=row.acknowledgement).update(
                **{name: getattr(row, name) for name in OPENED}
            )
    for record, content in told:
        if isinstance(content, AcknowledgementEnded):
            _end(server, record, content, now)


OPENED = ("message_key", "jms_message_id", "attempt", "opened_at", "due_at", "opened_record")


def _row(
    server: Server, setting: LaunchSetting, record: UUID, content: AcknowledgementOpened, now: datetime
) -> Acknowledgement:
    return Acknowledgement(
        acknowledgement=content.acknowledgement,
        setting=setting,
        server=server,
        activation_uuid=content.run.activation,
        epoch=content.run.epoch,
        message_key=storable(content.message.key)[:255],
        jms_message_id=storable(content.jms_message_id)[:LONGEST_JMS_ID],
        attempt=min(max(content.message.attempt, 1), LARGEST_ATTEMPT),
        opened_at=content.occurred_at,
        due_at=content.due_at,
        opened_record=record,
        created_at=now,
    )


def _end(server: Server, record: UUID, content: AcknowledgementEnded, now: datetime) -> None:
    waiting = Acknowledgement.objects.filter(
        acknowledgement=content.acknowledgement, server=server, state__in=WAITING_STATES
    )
    ended = waiting.update(
        state=content.state.value,
        reason=Reason.reported(content.reason) if content.reason else NO_REASON,
        ended_at=now,
        ended_record=record,
    )
    if not ended:
        # Ended before, or its setting is gone and its row with it.
        log.info("an end that nobody waits for", server=server.name, setting=content.run.setting)
