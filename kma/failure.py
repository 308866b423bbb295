"""A caught exception as what a protocol says about it."""

import traceback
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Any

from contract.fingerprint import fingerprint, user_frame
from contract.messages import MAX_TRACEBACK
from contract.text import MARK, head_and_tail, storable
from kma import patience
from kma.memory import peak_bytes
from kma.patience import TooLong, last_resort, within

MAX_TEXT = 8 * 1024
_HEADING = "Traceback (most recent call last):\n"
_MOST_FRAMES = 1000
_OWN = ("kma/handling.py", "kma/child.py", "kma/loading.py", "kma/standalone.py")


@dataclass(frozen=True, slots=True)
class Failure:
    """`exception_type` is qualified by its module, save for Python's own. `memory_peak` in bytes, 0 = not
    known."""

    exception_type: str
    text: str
    traceback: str = ""
    place: str = ""
    fingerprint: str = ""
    memory_peak: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def describe(error: BaseException) -> Failure:
    """Never raises and never hangs, whatever `error` does when it is turned into text."""
    name = type_name(type(error))
    with last_resort():
        text = head_and_tail(storable(_text(error)), MAX_TEXT)
        trace = _formatted(error, f"{name}: {text}")
    return replace(failure(name, text, trace), memory_peak=peak_bytes())


def failure(name: str, text: str, trace: str = "") -> Failure:
    return Failure(name, text, trace, user_frame(trace), fingerprint(name, text, trace))


def type_name(kind: type[BaseException]) -> str:
    """`KeyError`, `kma.agent.InvalidMessage`: at most 200 characters."""
    qualified = (
        kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    )
    return storable(qualified)[:200]


def _text(error: BaseException) -> str:
    def instead(second: BaseException) -> str:
        if isinstance(second, TooLong):
            return f"<no text: __str__ did not end within {patience.SECONDS:g} s>"
        return f"<no text: {type_name(type(second))} in __str__>"

    # A subclass of str may do anything in its methods.
    return within(lambda: str.__str__(str(error)), instead)


def _formatted(error: BaseException, summary: str) -> str:
    trace = _users(error.__traceback__)

    def instead(second: BaseException) -> str:
        why = "it did not end" if isinstance(second, TooLong) else type_name(type(second))
        return (
            f"{_HEADING}{_frames(trace)}{summary}\n<no causes and no lines: {why} while they "
            f"were formatted>\n"
        )

    lines = within(lambda: "".join(traceback.format_exception(type(error), error, trace)), instead)
    return head_and_tail(storable(lines), MAX_TRACEBACK - MARK)


def _frames(trace: TracebackType | None) -> str:
    """Where it was, without a line of its code: nothing here runs any of it."""
    found: list[str] = []
    while trace is not None and len(found) < _MOST_FRAMES:
        code = trace.tb_frame.f_code
        found.append(f'  File "{code.co_filename}", line {trace.tb_lineno}, in {code.co_name}\n')
        trace = trace.tb_next
    return "".join(found)


def _users(trace: TracebackType | None) -> TracebackType | None:
    """Without the container's own frames at the top: they are the same in every protocol."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.replace("\\", "/").endswith(_OWN):
        inner = inner.tb_next
    return inner or trace
