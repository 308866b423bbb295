"""Why a setting is not sent to its servers, in the reader's language."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agents.models import LaunchSetting, Withheld
from agents.models.parameters import DEEPEST_PARAMETERS
from agents.services.withholding import why_not_sent, withheld_runs


@dataclass(frozen=True, slots=True)
class Note:
    why: str
    what_to_do: str


WHY: dict[str, str | Promise] = {
    Withheld.PARAMETERS_TOO_DEEP: _("Its parameters nest too deep to be sent to a server."),
    Withheld.PARAMETERS_UNREADABLE: _("Its parameters cannot be read from the database."),
    Withheld.AGENT_NOT_ALLOWED: _("Its pool does not allow its agent."),
    Withheld.CANNOT_BE_SENT: _("What its servers need to know of it cannot be put together."),
}
WHAT_TO_DO: dict[str, str | Promise] = {
    Withheld.PARAMETERS_TOO_DEEP: _("Edit them: at most %(most)s levels. Until then it runs nowhere."),
    Withheld.PARAMETERS_UNREADABLE: _("Edit the setting and give them again. Until then it runs nowhere."),
    Withheld.AGENT_NOT_ALLOWED: _(
        "Choose an allowed agent, or allow this one in the pool. Until then it runs nowhere."
    ),
    Withheld.CANNOT_BE_SENT: _("The log of the site says why: ./ma logs web. Until then it runs nowhere."),
}


def withheld_note(setting: LaunchSetting) -> Note | None:
    """Also of a setting that is off: it could not be enabled."""
    found = (
        withheld_runs()
        .filter(activation__setting=setting)
        .order_by("pk")
        .values_list("withheld_because", flat=True)
    )
    code = why_not_sent(setting) or found.first()
    if not code:
        return None
    return Note(str(WHY[code]), str(WHAT_TO_DO[code]) % {"most": DEEPEST_PARAMETERS})
