"""Describes what happened to a message: each row that knows of it as one event of its case file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db.models import Q
from django.utils.translation import gettext as _

from agents.models import Acknowledgement, AcknowledgementState
from agents.pages.acknowledgements import STATES
from console.audit.models import AuditEntry, AuditResult
from console.audit.text import action_words
from console.ui import amounts
from console.ui.page import link
from contract.outcomes import Outcome as Ending
from dlq.edit.queries import VisibleEdit
from dlq.edit.rules.diff import Change
from dlq.models import (
    Action,
    DeadLetter,
    ItemState,
    KnownFault,
    LetterReport,
    Note,
    Outcome,
    ReplayItem,
)
from dlq.models.message_action import MessageResult, WaitingItem, WaitingKind
from dlq.replay.counts import LEFT
from dlq.replay.preflight.text import reason
from dlq.replay.text import is_back
from dlq.subscriptions.text import result_label
from failures.models import FailureProtocol, RecoveredMessage

NOTED = Ending.NOTED.value


@dataclass(frozen=True, slots=True)
class Event:
    """`what`, `detail`, `folded` and `changes` are hostile text, to be made visible; `url` is where the row
    behind it is shown. `folded` is long: shown when it is asked for. `changes` as `VisibleEdit` has them."""

    at: datetime
    tone: str
    what: str
    detail: str = ""
    url: str = ""
    letter: int | None = None
    folded: str = ""
    changes: Sequence[Change] = field(default=())


def failure(protocol: FailureProtocol, traceback: str) -> Event:
    """`traceback` empty: not shown to this person, or too far back."""
    given_up = protocol.by_hand
    if given_up:
        what = _("Moved to DLQ manually after attempt %(n)s: %(kind)s")
    elif protocol.outcome == NOTED:
        what = _("Recorded on attempt %(n)s: %(kind)s")
    else:
        what = _("Failed on attempt %(n)s: %(kind)s")
    what %= {"n": amounts.number(protocol.attempt), "kind": protocol.exception_type}
    run = _("%(server)s, activation %(id)s") % {
        "server": protocol.server_name,
        "id": str(protocol.activation_uuid)[:8],
    }
    doubt = "" if protocol.verified else _("unverified")
    detail = " · ".join(filter(None, [run, doubt, protocol.place, protocol.exception_text.strip()]))
    tone = "warn" if protocol.temporary else "bad"
    folded = "" if given_up else traceback  # that of the failure before it
    return Event(protocol.occurred_at, tone, what, detail, link("protocol", protocol.pk), folded=folded)


def death(letter: DeadLetter, *, explained: bool = True) -> Event:
    """`explained`: its last failure is an event of its own; else the dead letter tells of it what it kept."""
    what = _("Dead-lettered to %(queue)s") if letter.died_here else _("Moved to %(queue)s")
    number = _("message %(n)s") % {"n": letter.pk}
    tone = "bad" if letter.died_here else "info"
    kept = "" if letter.durable else _("non-persistent")
    without = _("body deleted by retention") if letter.body_deleted_at else ""
    detail = " · ".join(filter(None, [number, kept, *([] if explained else _kept_of(letter)), without]))
    return Event(
        letter.seen_at, tone, what % {"queue": letter.queue}, detail, link("letter", letter.pk), letter.pk
    )


def _kept_of(letter: DeadLetter) -> list[str]:
    where = _("on %(server)s") % {"server": letter.server_name} if letter.server_name else ""
    found = [letter.exception_type, letter.exception_text.strip(), letter.place, where]
    return [*filter(None, found), _("failure protocol deleted by retention")]


def _done(item: ReplayItem) -> str:
    job = item.job
    words = {
        Action.GIVE_BACK: _("Replayed to %(key)s"),
        Action.REDIRECT: _("Redirected from %(key)s to %(target)s"),
        Action.DISCARD: _("Discarded: moved to the trash"),
        Action.PUT_BACK: _("Restored from the trash"),
        Action.EDIT: _("Edited and replayed to %(key)s"),
    }
    return words[Action(job.action)] % {"key": job.setting_key, "target": job.target_key or job.setting_key}


def moved(item: ReplayItem, edit: VisibleEdit | None) -> Event:
    job = item.job
    words = {
        ItemState.UNCONFIRMED: _("Left the queue, move not confirmed (%(action)s)"),
        ItemState.TAKEN_ELSEWHERE: _("Taken by another consumer before the move (%(action)s)"),
        ItemState.NOT_FOUND: _("Not moved (%(action)s): the message is no longer in the queue"),
        ItemState.FAILED_TO_MOVE: _("Could not be moved (%(action)s)"),
        ItemState.SKIPPED: _("Skipped (%(action)s)"),
        ItemState.CANCELLED: _("Cancelled before the move (%(action)s)"),
    }
    state = ItemState(item.state)
    if is_back(item):
        words[state] = _(
            "Not moved (%(action)s): another consumer took the message and returned it to the queue"
        )
    what = words[state] % {"action": job.get_action_display()} if state in words else _done(item)
    by = job.by.get_username() if job.by else _("unknown user")
    said = [by, job.reason, reason(item.why) if state in words else ""]
    if state in LEFT and item.outcome and job.action != Action.DISCARD:
        said.append(str(Outcome(item.outcome).label))
    if edit and edit.deleted_at:
        said.append(_("changes deleted by retention"))
    tone = "info" if state == ItemState.GIVEN_BACK else "warn"
    return Event(
        _moved_at(item),
        tone,
        what,
        " · ".join(filter(None, said)),
        link("replay", item.job_id),
        changes=edit.changes if edit else (),
    )


def _moved_at(item: ReplayItem) -> datetime:
    """What left is known when its slice is checked; it left when that was moved, before all that became of
    it."""
    left_at = item.slice.moved_at if item.slice and item.state in LEFT else None
    return left_at or item.state_at


def arrived(item: ReplayItem, *, seen: bool) -> Event:
    """It was redirected here, where its case goes on. Not `seen`: of the setting that it left this person may
    not see more than its name."""
    told = moved(item, None)
    return replace(told, url=link("letter", item.letter_id)) if seen else Event(told.at, told.tone, told.what)


def recovery(recovered: RecoveredMessage) -> Event:
    what = _("Processed successfully on attempt %(n)s") % {"n": amounts.number(recovered.attempt)}
    return Event(recovered.occurred_at, "ok", what, _server_of(recovered))


def report(told: LetterReport) -> Event:
    return Event(told.occurred_at, "ok", _("Processed successfully after the replay"), _server_of(told))


def _server_of(said: RecoveredMessage | LetterReport) -> str:
    return said.server_name if said.verified else said.server_name + " · " + _("unverified")


def noted(note: Note) -> Event:
    what = _("Note by %(name)s") % {"name": note.by_name or _("unknown user")}
    return Event(note.at, "note", what, note.text)


def known(fault: KnownFault) -> Event:
    what = _("Error marked as known by %(name)s") % {"name": fault.by_name or _("unknown user")}
    return Event(fault.at, "note", what, " · ".join(filter(None, [fault.ticket, fault.text])))


def tried(entry: AuditEntry) -> Event:
    """Returns what was refused or failed; what was done has an event of its own."""
    words = {AuditResult.REFUSED: _("Refused: %(action)s"), AuditResult.FAILED: _("Failed: %(action)s")}
    what = words[AuditResult(entry.result)] % {"action": action_words(entry.action)}
    why = str(entry.detail.get("why", "")) if isinstance(entry.detail, dict) else ""
    return Event(entry.at, "warn", what, " · ".join(filter(None, [entry.by_name, why])))


# -- deliveries of a message that waited for an answer (CLIENT): events of its case file ---------------------
# One that was lost is no failure and has no protocol, yet the broker may have counted it.


BOUND = 200


def answer_events_of(key: str, setting_key: str) -> list[Event]:
    """Finds them by its JMS message id, which is the key of every message that has one."""
    rows = Acknowledgement.objects.filter(jms_message_id=key, setting__key=setting_key).select_related(
        "server"
    )
    return [_answer_event(row) for row in rows.order_by("-created_at", "-id")[:BOUND]]


def _answer_event(row: Acknowledgement) -> Event:
    shown, at = STATES[row.state], row.ended_at
    if at is None:
        what, url = _("Awaiting acknowledgement (attempt %(n)s)"), link("answers")
    else:
        what, url = _("Acknowledgement on attempt %(n)s: %(state)s"), f"{link('answers')}?state=ended"
    facts = {"n": amounts.number(row.attempt), "state": shown.word}
    detail = " · ".join(filter(None, [row.server.name, str(row.reason)]))
    tone = "warn" if row.state == AcknowledgementState.LOST else shown.tone
    return Event(at or row.opened_at or row.created_at, tone, what % facts, detail, url)


# -- what was done to a message before it died or was handled: events of its case file -----------------------


def waiting_events_of(key: str, setting_key: str, letters: Iterable[DeadLetter]) -> list[Event]:
    """Finds them by its key, of which the broker does not tell enough before it dies; then by the number that
    it had before."""
    numbers = [letter.orig_message_id for letter in letters]
    about = Q(number__in=numbers, action__kind=WaitingKind.TO_DLQ)
    if key:
        about |= Q(message_key=key)
    items = WaitingItem.objects.filter(about, setting_key=setting_key).exclude(fate=MessageResult.PLANNED)
    return [_waiting_event(item) for item in items.select_related("action").order_by("-pk")[:BOUND]]


def _waiting_event(item: WaitingItem) -> Event:
    """Returns when it was asked for: what followed from it comes after it."""
    action = item.action
    words = {
        WaitingKind.TRY_NOW: _("Redelivered without delay at the request of %(name)s"),
        WaitingKind.TO_DLQ: _("Moved to DLQ by %(name)s"),
        WaitingKind.HOLD: _("Put on hold by %(name)s"),
        WaitingKind.RELEASE: _("Released by %(name)s"),
    }
    what = words[WaitingKind(action.kind)] % {"name": action.by_name or _("unknown user")}
    done = item.fate == MessageResult.DONE
    said = [action.reason, "" if done else str(result_label(action, item.fate).word)]
    tone = "info" if done else "warn"
    return Event(
        action.created_at, tone, what, " · ".join(filter(None, said)), link("waiting_action", action.pk)
    )
