"""Answers to deliveries that wait for one, and what servers say of these deliveries. An answer is a row:
pending from when it is given until the server that holds the delivery has said what came of it.

Given and killed: the row is pending, and every heartbeat of that server carries it until its end is
stored.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import BoundedSemaphore
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from agents.liveness import poll_after_commit, silence_counts
from agents.models import (
    WAITING_STATES,
    Acknowledgement,
    AcknowledgementState,
    LaunchSetting,
    Run,
    RunPhase,
    Server,
)
from agents.models.acknowledgement import LONGEST_JMS_ID
from agents.models.server import lost_before
from agents.models.setting import AckMode
from agents.reasons import DELIVERED_AGAIN
from console.audit.log import Record, no_record
from console.operations.refusals import Refused
from console.reasons import NO_REASON, Reason
from contract import messages
from contract.acknowledgements import END_OF, Action, read_id, verify
from contract.records import AcknowledgementEnded, AcknowledgementOpened
from contract.typed import storable

log = structlog.get_logger(__name__)

# -- the secret of a run, with which its server makes acknowledgement ids ------------------------------------
# Derived from the site's key, so it stands in no row: whoever reads the database cannot make an id.


def secret_of(run: Run, server: Server) -> str:
    """Hexadecimal, 32 bytes."""
    named = f"{run.activation_id.hex} {run.epoch} {server.name}"
    return salted_hmac("agents.acknowledgement", named, algorithm="sha256").hexdigest()


# Seconds that an answer waits for its end, and how many of them do so at once in a process: its other threads
# take the records that say it.
PATIENCE = 5.0
WAITING_AT_ONCE = 2
PAUSE = 0.1
MOST_PASSED_ON = 500
GONE = (AcknowledgementState.EXPIRED, AcknowledgementState.LOST)

_places = BoundedSemaphore(WAITING_AT_ONCE)


class NotAnswered(Refused):
    """`row`: what there is, if anything."""

    word = "not_answered"

    def __init__(self, text: str, row: Acknowledgement | None = None) -> None:
        super().__init__(self.word, text)
        self.row = row


class Unknown(NotAnswered):
    """There is no such delivery, and never was."""

    word = "not_found"


class Ambiguous(NotAnswered):
    """Says that no delivery, or several, answer to this."""

    word = "not_exactly_one"


class AnsweredOtherwise(NotAnswered):
    """Another answer came first."""

    word = "answered_otherwise"


class TooLate(NotAnswered):
    """It waits no more: its time has passed, or it went with its connection."""

    word = "gone"


@dataclass(frozen=True, slots=True)
class Answerer:
    """Says who answers: a person, or a server whose agent does. `through`: the token, or that server."""

    by: Any = None
    through: Reason = NO_REASON


def named(acknowledgement: str, now: datetime) -> Acknowledgement:
    """The delivery with this id. One whose record is still under way gets its row. Raises Unknown,
    TooLate."""
    row = _found(acknowledgement)
    if row is not None:
        return row
    try:
        parts = read_id(acknowledgement)
    except ValueError:
        raise Unknown(_("Invalid acknowledgement id.")) from None
    server = Server.objects.filter(name=parts.server).first()
    runs = Run.objects.filter(
        activation=parts.activation, epoch=parts.epoch, activation__setting__mode=AckMode.CLIENT
    )
    run = runs.select_related("activation__setting").filter(server=server).first() if server else None
    if run is None or server is None or not verify(secret_of(run, server), acknowledgement):
        raise Unknown(_("No delivery has this acknowledgement id."))
    if run.closed_at is not None and run.state != RunPhase.LOST:
        raise TooLate(
            _("The instance has ended: the message is already acknowledged or back in the subscription.")
        )
    # Its record is under way, or it never came to wait: the server will say.
    made = {
        "setting": run.activation.setting,
        "server": server,
        "activation_uuid": parts.activation,
        "epoch": parts.epoch,
        "created_at": now,
    }
    row, _made = Acknowledgement.objects.get_or_create(acknowledgement=acknowledgement, defaults=made)
    return row


def outstanding(setting: str, jms_message_id: str) -> Acknowledgement:
    """The only delivery of this setting with this JMS message id that waits. Raises Ambiguous."""
    rows = Acknowledgement.objects.filter(
        setting__key=setting, jms_message_id=jms_message_id, ended_at=None, opened_at__isnull=False
    )
    found = list(rows.select_related("setting", "server")[:2]) if jms_message_id else []
    if len(found) == 1:
        return found[0]
    if found:
        raise Ambiguous(
            _("Several deliveries of this message await acknowledgement: specify the acknowledgement id.")
        )
    raise Ambiguous(_("This message is not awaiting acknowledgement."))


def acknowledge(
    row: Acknowledgement, action: Action, who: Answerer, now: datetime, record: Record = no_record
) -> Acknowledgement:
    """The first answer counts, the same again changes nothing. Raises AnsweredOtherwise, TooLate."""
    with transaction.atomic():
        unanswered = Acknowledgement.objects.filter(pk=row.pk, state=AcknowledgementState.OPEN)
        first = unanswered.update(
            state=AcknowledgementState.PENDING,
            action=action.value,
            answered_at=now,
            answered_by=who.by,
            answered_from=who.through,
        )
        if first:
            record()
            poll_after_commit([row.server.name])
    row = _again(row)
    if first:
        log.info(
            "answered", setting=row.setting.key, server=row.server.name, activation=str(row.activation_uuid),
            message_key=row.message_key, action=action.value,
        )  # fmt: skip
    elif row.state in GONE:
        raise TooLate(str(row.reason or _("The delivery no longer awaits acknowledgement.")), row)
    elif not _same(row, action):
        raise AnsweredOtherwise(
            _("Another acknowledgement came first: %(what)s.") % {"what": row.get_state_display()}, row
        )
    return row


def _same(row: Acknowledgement, action: Action) -> bool:
    """Where the agent itself answered, the end says how."""
    if row.action:
        return row.action == action.value
    return row.state == END_OF[action].value


def until_ended(row: Acknowledgement, seconds: float = PATIENCE) -> Acknowledgement:
    """The row when it has ended, or as it is after so long: at once where enough others wait. Raises TooLate
    where its server could do nothing with the answer any more."""
    if row.state not in WAITING_STATES or not _places.acquire(blocking=False):
        return row
    try:
        deadline = time.monotonic() + seconds
        while row.state in WAITING_STATES and time.monotonic() < deadline:
            time.sleep(PAUSE)
            row = _again(row)
    finally:
        _places.release()
    if row.state in GONE:
        raise TooLate(str(row.reason or _("The delivery no longer awaits acknowledgement.")), row)
    return row


def to_pass_on(server: Server) -> tuple[messages.Answer, ...]:
    """Answers whose end this server has not told yet, oldest first; the rest after these have ended."""
    pending = Acknowledgement.objects.filter(server=server, ended_at=None, state=AcknowledgementState.PENDING)
    rows = pending.order_by("id").values_list("acknowledgement", "action")[:MOST_PASSED_ON]
    return tuple(messages.Answer(acknowledgement, Action(action)) for acknowledgement, action in rows)


def _found(acknowledgement: str) -> Acknowledgement | None:
    rows = Acknowledgement.objects.select_related("setting", "server")
    return rows.filter(acknowledgement=acknowledgement).first()


def _again(row: Acknowledgement) -> Acknowledgement:
    return Acknowledgement.objects.select_related("setting", "server").get(pk=row.pk)


# -- deliveries that the broker has sent again ---------------------------------------------------------------
# A delivery on a server that is not heard any more may be gone whatever becomes of the server: the broker has
# delivered its message to another one since.
#
# Two messages with the same JMS message id are taken for one here. Then an answer to the first is refused
# though its server may still hold it; it gives the message back when it ends or its time is over: nothing is
# lost.


MOST_AT_ONCE = 500


def lose_redelivered(now: datetime) -> int:
    """Returns how many wait no longer. What their server says later of them changes nothing."""
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


# -- what servers say of deliveries that wait for an answer --------------------------------------------------
# Called inside the intake's transaction: a record that comes again, also under another number, changes
# nothing. A spool tells that a delivery was left open before it tells its end; an answer may come before
# both.


Told = AcknowledgementOpened | AcknowledgementEnded
LARGEST_ATTEMPT = 2**31 - 1


def known_records(ids: Collection[UUID]) -> set[UUID]:
    """Those of these records that are stored."""
    rows = Acknowledgement.objects.filter(Q(opened_record__in=ids) | Q(ended_record__in=ids))
    stored = {record for row in rows.values_list("opened_record", "ended_record") for record in row}
    return {record for record in ids if record in stored}


def accept_reports(server: Server, told: Sequence[tuple[UUID, Told]], now: datetime) -> None:
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
        log.info("result of an unknown delivery ignored", server=server.name, setting=content.run.setting)
