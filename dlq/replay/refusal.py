"""Why something is not begun or not changed."""

from typing import Any


class ReplayRefused(Exception):
    """Nothing was planned or changed. `code` is a stable word, `more` says which letters."""

    def __init__(self, code: str, reason: str, what_to_do: str = "", **more: Any) -> None:
        super().__init__(reason)
        self.code, self.reason, self.what_to_do, self.more = code, reason, what_to_do, more
