"""Describes why something is not done."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext

from console.reasons import BROKER_AWAY, Reason, said
from console.ui.errors import Missing


class Refused(Exception):
    """It cannot be done now. `why` is the reason as a row keeps it; `what_to_do` says what helps; `code` is a
    stable word. `more`: what a program is told besides."""

    is_attempt = True

    def __init__(self, code: str, why: Reason | str, what_to_do: str = "", **more: Any) -> None:
        super().__init__(why)
        self.code = code
        self.why = why if isinstance(why, Reason) else said(why)
        self.what_to_do = what_to_do
        self.more = more

    @property
    def reason(self) -> str:
        """Returns the reason in the language of the reader."""
        return str(self.why)

    @property
    def sentence(self) -> str:
        """The reason, and what helps. What a broker or a library said often has no full stop."""
        end = "" if self.reason.endswith((".", "!", "?", "…", ":", "”", "»")) else "."
        return f"{self.reason}{end} {self.what_to_do}".strip()


class WronglyAsked(Refused):
    """It can never be done as it is asked for: no attempt that the audit keeps."""

    is_attempt = False


class BrokerAway(Refused):
    """The broker does not answer, or answers with an error. `what_to_do`: where trying again is not all."""

    def __init__(self, problem: object = "", what_to_do: str = "") -> None:
        why = BROKER_AWAY(problem=str(problem)) if problem else gettext("The broker is not responding.")
        again = gettext("Nothing was changed. Try again later.")
        super().__init__("broker_away", why, what_to_do or again)


class NotAllowed(PermissionDenied):
    """This person may not do it. `reason` says which right is missing; `permissions` would give it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.permissions = reason.permissions if isinstance(reason, Missing) else ()
