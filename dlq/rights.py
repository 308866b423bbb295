"""Describes what people may do with dead letters: everywhere by a permission, in one pool by a grant. Asked
by `agents.pools.rights`: `may(user, SEE, setting)`, `settings_for(user, GIVE_BACK)` and so on.
"""

from typing import Any

from django.utils.translation import gettext_lazy as _

from agents.models import LaunchSetting
from agents.pools.rights import add_action, may
from dlq.models import Action

SEE = "see_letters"
SEE_MASKED = "see_masked"
GIVE_BACK = "give_back"
EDIT = "edit_letters"
REDIRECT = "redirect"
REDIRECT_ELSEWHERE = "redirect_elsewhere"
DISCARD = "discard"
WAITING = "handle_waiting"
IMPORT = "import_letters"
SEE_REPLAYS = "dlq.view_replayjob"
# In every pool.
GIVE_BACK_EVERYWHERE = "dlq.give_back"


# Beside the right to see the dead letters. Who may discard may take it back.
OF_ACTIONS: dict[str, str] = {
    Action.GIVE_BACK: GIVE_BACK,
    Action.REDIRECT: REDIRECT,
    Action.DISCARD: DISCARD,
    Action.PUT_BACK: DISCARD,
    Action.EDIT: EDIT,
}


def right_of(action: str, *, elsewhere: bool = False) -> str:
    """`elsewhere`: a redirect to a setting of another destination, whose agent may know nothing of them."""
    return REDIRECT_ELSEWHERE if elsewhere else OF_ACTIONS[action]


def right_to_redirect(user: Any, setting: LaunchSetting | None) -> str:
    """Returns which of both this person has here; of neither the one that is needed less."""
    if setting is None or may(user, REDIRECT, setting) or not may(user, REDIRECT_ELSEWHERE, setting):
        return REDIRECT
    return REDIRECT_ELSEWHERE


def register_rights() -> None:
    add_action(SEE, "dlq.view_deadletter", "may_see_letters", _("Can view dead letter"))
    add_action(
        SEE_MASKED, "dlq.can_see_masked", "may_see_masked", _("Can see masked properties of dead letters")
    )
    add_action(GIVE_BACK, GIVE_BACK_EVERYWHERE, "may_give_back", _("Can replay dead letters"))
    add_action(EDIT, "dlq.edit_letters", "may_edit_letters", _("Can edit and replay dead letters"))
    add_action(REDIRECT, "dlq.redirect", "may_redirect", _("Can redirect dead letters to another setting"))
    add_action(
        REDIRECT_ELSEWHERE,
        "dlq.redirect_elsewhere",
        "may_redirect_elsewhere",
        _("Can redirect dead letters to settings with another destination"),
    )
    add_action(DISCARD, "dlq.discard", "may_discard", _("Can discard dead letters"))
    add_action(WAITING, "dlq.handle_waiting", "may_handle_waiting", _("Can manage waiting messages"))
    add_action(
        IMPORT, "dlq.import_letters", "may_import_letters", _("Can send imported messages to a setting")
    )
