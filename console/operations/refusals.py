"""Why something is not done."""

from django.core.exceptions import PermissionDenied

from console.reasons import Reason, said


class Refused(Exception):
    """It cannot be done now. `why` is the reason as a row keeps it; `what_to_do` says what helps; `code` is a
    stable word."""

    def __init__(self, code: str, why: Reason | str, what_to_do: str = "") -> None:
        super().__init__(why)
        self.code = code
        self.why = why if isinstance(why, Reason) else said(why)
        self.what_to_do = what_to_do

    @property
    def reason(self) -> str:
        """In the language of whoever asks."""
        return str(self.why)

    @property
    def sentence(self) -> str:
        """The reason, and what helps."""
        return f"{self.reason} {self.what_to_do}".strip()


class NotAllowed(PermissionDenied):
    """This person may not do it. `reason` says which right is missing."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
