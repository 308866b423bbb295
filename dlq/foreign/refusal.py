"""What is refused about foreign queues, and what to do instead."""


class ForeignRefused(Exception):
    """`code` for programs, `reason` and `what_to_do` for people."""

    def __init__(self, code: str, reason: str, what_to_do: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason, self.what_to_do = code, reason, what_to_do
