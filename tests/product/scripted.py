"""Bodies for `demo.scripted`. `note` is the message's number in the test, and comes back in the truth
file."""

from typing import Any

Body = dict[str, Any]


def ok(n: int) -> Body:
    return {"do": "ok", "note": n}


def poisoned(n: int) -> Body:
    return {"do": "raise", "type": "RuntimeError", "text": f"poisoned {n}", "note": n}


def invalid(n: int) -> Body:
    """Dead at its first attempt, whatever the destination allows."""
    return {"do": "invalid", "text": f"invalid {n}", "note": n}


def slow(n: int, seconds: float) -> Body:
    return {"do": "sleep", "seconds": seconds, "note": n}


def exits(n: int, code: int) -> Body:
    return {"do": "exit", "code": code, "note": n}


def killed(n: int, signal: str) -> Body:
    return {"do": "kill", "signal": signal, "note": n}
