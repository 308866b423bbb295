"""What can be done with one dead letter, and why some of it cannot be done now."""

from typing import Any

from django.utils.translation import gettext as _

from agents.services.rights import why_not
from console.ui.labels import Button
from console.ui.page import link
from contract.properties import BIN, dead_letter_queue
from dlq import rights
from dlq.binned.returns import PutBack
from dlq.models import DeadLetter, ItemState, LetterState, ReplayItem


def buttons_of(user: Any, letter: DeadLetter, put_back: PutBack | None = None) -> list[Button]:
    key = letter.setting_key
    stays = _("It was put back from the bin.") if put_back else not_now(letter)

    def button(
        name: str, text: str, url: str, icon: str, right: str, tone: str = "", also: str = ""
    ) -> Button:
        refusal = (why_not(user, right, letter.setting) if letter.setting else "") or stays or also
        return Button(name, text, "" if refusal else url, icon, tone, refusal)

    def where(name: str) -> str:
        return link(name, key) + f"?letter={letter.pk}" if letter.setting else ""

    if letter.queue == dead_letter_queue(BIN):
        return [button("put-back", _("Put back…"), where("put_back"), "back", rights.DISCARD, "primary")]
    return [
        button("give-back", _("Give back…"), where("give_back"), "back", rights.GIVE_BACK, "primary"),
        button("edit", _("Edit and give back…"), link("edit_letter", letter.pk), "edit", rights.EDIT),
        button("redirect", _("Redirect…"), where("redirect"), "back", rights.REDIRECT),
        button("discard", _("Discard…"), where("discard"), "trash", rights.DISCARD, "danger"),
    ]


def not_now(letter: DeadLetter) -> str:
    """Why nothing at all can be done with it; empty when something can."""
    gone = {
        LetterState.GIVEN_BACK: _("It was given back already."),
        LetterState.GONE: _("It is not in the queue any more."),
        LetterState.DISCARDED: _("It was discarded. It can be put back from the bin."),
    }
    if letter.state in gone:
        return gone[LetterState(letter.state)]
    if letter.setting is None:
        return _("It belongs to no setting that is there.")
    if letter.queue not in (dead_letter_queue(letter.setting_key), dead_letter_queue(BIN)):
        return _(
            "It does not lie in the queue of its setting. ./ma manage adopt_dead_letters can bring it there."
        )
    if letter.orig_message_id < 0:
        return _("Somebody sent it to the dead-letter queue: it never was in the subscription.")
    if ReplayItem.objects.filter(letter=letter, state=ItemState.PLANNED).exists():
        return _("A replay is about to move it.")
    return ""
