"""What was done to a message before it died or was handled: events of its case file."""

from collections.abc import Iterable

from django.db.models import Q
from django.utils.translation import gettext as _

from console.ui.page import link
from dlq.models import DeadLetter
from dlq.models.waiting import Fate, WaitingItem, WaitingKind
from dlq.pages.events import Event
from dlq.pages.waiting_words import fate_shown

BOUND = 200


def events_of(key: str, setting_key: str, letters: Iterable[DeadLetter]) -> list[Event]:
    """By its key, of which the broker does not tell enough before it dies; then by the number that it had
    before."""
    numbers = [letter.orig_message_id for letter in letters]
    about = Q(number__in=numbers, action__kind=WaitingKind.TO_DLQ)
    if key:
        about |= Q(message_key=key)
    items = WaitingItem.objects.filter(about, setting_key=setting_key).exclude(fate=Fate.PLANNED)
    return [_event(item) for item in items.select_related("action").order_by("-pk")[:BOUND]]


def _event(item: WaitingItem) -> Event:
    """When it was asked for: what followed from it comes after it."""
    action = item.action
    words = {
        WaitingKind.TRY_NOW: _("Tried without the delay by %(name)s"),
        WaitingKind.TO_DLQ: _("Sent to the dead letters by %(name)s"),
        WaitingKind.HOLD: _("Held back by %(name)s"),
        WaitingKind.RELEASE: _("Released by %(name)s"),
    }
    what = words[WaitingKind(action.kind)] % {"name": action.by_name or _("unknown person")}
    done = item.fate == Fate.DONE
    said = [action.reason, "" if done else str(fate_shown(action, item.fate).word)]
    tone = "info" if done else "warn"
    return Event(
        action.created_at, tone, what, " · ".join(filter(None, said)), link("waiting_action", action.pk)
    )
