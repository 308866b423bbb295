"""Why an edit cannot be made."""


class EditRefused(Exception):
    """Nothing was changed. `code` is a stable word, `what` names the part that it is about: `body`, a
    property, or `rule 2`. The words say neither a value nor a part of the body."""

    def __init__(self, code: str, reason: str, what: str = "") -> None:
        super().__init__(f"{what}: {reason}" if what else reason)
        self.code, self.reason, self.what = code, reason, what
