"""Describes what people may do with dead letters: everywhere by a permission, in one pool by a grant. Asked
by `agents.pools.rights`: `may(user, SEE, setting)`, `settings_for(user, GIVE_BACK)` and so on.
"""

from django.utils.translation import gettext_lazy as _

from agents.pools.rights import add_action
from dlq.models import Action

SEE = "see_letters"
SEE_MASKED = "see_masked"
GIVE_BACK = "give_back"
EDIT = "edit_letters"
REDIRECT = "redirect"
DISCARD = "discard"
WAITING = "handle_waiting"
IMPORT = "import_letters"
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


def register_rights() -> None:
    add_action(SEE, "dlq.view_deadletter", "may_see_letters", _("Can view dead letter"))
    add_action(
        SEE_MASKED, "dlq.can_see_masked", "may_see_masked", _("Can see masked properties of dead letters")
    )
    add_action(
        GIVE_BACK, GIVE_BACK_EVERYWHERE, "may_give_back", _("Can give dead letters back to their setting")
    )
    add_action(EDIT, "dlq.edit_letters", "may_edit_letters", _("Can edit dead letters and give them back"))
    add_action(REDIRECT, "dlq.redirect", "may_redirect", _("Can redirect dead letters to another setting"))
    add_action(DISCARD, "dlq.discard", "may_discard", _("Can discard dead letters"))
    add_action(WAITING, "dlq.handle_waiting", "may_handle_waiting", _("Can handle waiting messages"))
    add_action(
        IMPORT, "dlq.import_letters", "may_import_letters", _("Can send imported messages to a setting")
    )
