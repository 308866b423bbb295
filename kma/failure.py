"""A caught exception as what a protocol says about it."""

import traceback
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

from contract.fingerprint import fingerprint, user_frame
from contract.messages import MAX_TRACEBACK
from contract.text import MARK, head_and_tail, storable

MAX_TEXT = 8 * 1024
_OWN = ("kma/handling.py", "kma/child.py", "kma/loading.py", "kma/standalone.py")


@dataclass(frozen=True, slots=True)
class Failure:
    """`exception_type` is qualified by its module, save for Python's own."""

    exception_type: str
    text: str
    traceback: str = ""
    place: str = ""
    fingerprint: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def describe(error: BaseException) -> Failure:
    """Never raises, whatever `error` does when it is turned into text."""
    name = type_name(type(error))
    text = head_and_tail(storable(_text(error)), MAX_TEXT)
    return failure(name, text, _formatted(error))


def failure(name: str, text: str, trace: str = "") -> Failure:
    return Failure(name, text, trace, user_frame(trace), fingerprint(name, text, trace))


def type_name(kind: type[BaseException]) -> str:
    """`KeyError`, `kma.agent.InvalidMessage`: at most 200 characters."""
    qualified = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return storable(qualified)[:200]


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as second:
        return f"<no text: {type_name(type(second))} in __str__>"


def _formatted(error: BaseException) -> str:
    try:
        lines = traceback.format_exception(type(error), error, _users(error.__traceback__))
        text = "".join(lines)
    except BaseException as second:
        text = f"<no traceback: {type_name(type(second))} while it was formatted>"
    return head_and_tail(storable(text), MAX_TRACEBACK - MARK)


def _users(trace: TracebackType | None) -> TracebackType | None:
    """Without the container's own frames at the top: they are the same in every protocol."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.replace("\\", "/").endswith(_OWN):
        inner = inner.tb_next
    return inner or trace
