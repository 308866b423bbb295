"""`demo.scripted`: does what the message says. Acceptance tests use it, operators rehearse with it.

The body is JSON: one step, or a list of steps that are done in this order. A step is an object with `do`:

    {"do": "ok"}                                          nothing
    {"do": "raise", "type": "KeyError", "text": "sku"}    raises; a type that Python lacks is made up
    {"do": "temporary", "text": "…"}                      raises TemporaryUnavailable
    {"do": "invalid", "text": "…"}                        raises InvalidMessage
    {"do": "exit", "code": 1}                             os._exit(code)
    {"do": "kill", "signal": "SIGKILL"}                   kills its own process by that signal
    {"do": "sleep", "seconds": 2.5}
    {"do": "allocate", "mb": 100}                         holds so much memory until the process ends
    {"do": "send", "destination": "demo.invoices", "count": 3, "body": "…"}
    {"do": "acknowledge", "action": "COMMIT", "id": "…"}  in the mode CLIENT; its own delivery where no `id`
    is given

`"first": k` in a step means: only on the first k deliveries (attempts); later the step is skipped. `send`
reaches addresses that begin with `demo.` only. Anything else is an InvalidMessage. `text`, `code` (1),
`signal` (SIGKILL), `count` (1) and `body` may be left out.

The parameter `truth_file` of the setting names a file below KMA_DATA/truth (`limits.py`) to which each
attempt that began adds one line of JSON, before anything is done: {"key", "id", "attempt", "redelivered",
"pid", "at", "note"}; `note` is the first step's `note`. In the mode CLIENT there is also `acknowledgement`,
the delivery's id, and each `acknowledge` adds a line {"answered", "state"}; `state` is how it ended, or why
it was refused.
"""

import builtins
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from kma.agent import (
    AcknowledgementRefused,
    Agent,
    Context,
    InvalidMessage,
    Message,
    TemporaryUnavailable,
    agent,
)
from kma.samples import limits

Step = Mapping[str, Any]
_MEGABYTE = 1024 * 1024


@agent("demo.scripted", version="1")
class Scripted(Agent):
    """Does what the message says: ok, raise, temporary, invalid, exit, kill, sleep, allocate, send."""

    kept: list[bytearray] = []

    def run_agent(self, message: Message, context: Context) -> None:
        truth = context.parameters.get("truth_file")
        if truth:
            write_truth(str(truth), message, context.acknowledgement_id)
        for step in steps_of(message.json()):
            if message.attempt <= number_of(step, "first", message.attempt):
                act(step)(step, context)


def write_truth(path: str, message: Message, acknowledgement: str = "") -> None:
    """One write with O_APPEND: lines of several processes never mix, and a kill leaves whole lines."""
    line = {
        "key": message.key,
        "id": message.id,
        "attempt": message.attempt,
        "redelivered": message.redelivered,
        "pid": os.getpid(),
        "at": time.time(),
        "note": _note(message.body),
    }
    if acknowledgement:
        line["acknowledgement"] = acknowledgement
    _write(path, line)


def _write(path: str, line: Mapping[str, Any]) -> None:
    file = limits.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


def _note(body: Any) -> Any:
    try:
        return steps_of(json.loads(body))[0].get("note")
    except (ValueError, TypeError, IndexError, InvalidMessage):
        return None


def steps_of(script: Any) -> list[Step]:
    """One step or a list of them. Raises InvalidMessage."""
    steps = script if isinstance(script, list) else [script]
    if not all(isinstance(step, dict) for step in steps):
        raise InvalidMessage("a step must be an object with `do`")
    return steps


def act(step: Step) -> Callable[[Step, Context], None]:
    """What does the step. Raises InvalidMessage when nothing does."""
    found = _ACTS.get(step.get("do", ""))
    if found is None:
        raise InvalidMessage(f"`do` must be one of {', '.join(_ACTS)}, not {step.get('do')!r}")
    return found


def number_of(step: Step, name: str, default: float) -> float:
    """Raises InvalidMessage."""
    value = step.get(name, default)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidMessage(f"`{name}` must be a number, not {value!r}")
    return value


def _text(step: Step, default: str = "") -> str:
    return str(step.get("text", default))


def _ok(step: Step, context: Context) -> None:
    pass


def _raise(step: Step, context: Context) -> None:
    name = str(step.get("type", "RuntimeError"))
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        kind = type(name, (Exception,), {"__module__": "demo"})
    raise kind(_text(step, "as the message says"))


def _temporary(step: Step, context: Context) -> None:
    raise TemporaryUnavailable(_text(step, "as the message says"))


def _invalid(step: Step, context: Context) -> None:
    raise InvalidMessage(_text(step, "as the message says"))


def _exit(step: Step, context: Context) -> None:
    os._exit(int(number_of(step, "code", 1)))


def _kill(step: Step, context: Context) -> None:
    try:
        number = signal.Signals[str(step.get("signal", "SIGKILL"))]
    except KeyError as error:
        raise InvalidMessage(f"unknown signal {error}") from error
    signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), number)


def _sleep(step: Step, context: Context) -> None:
    time.sleep(number_of(step, "seconds", 1))


def _allocate(step: Step, context: Context) -> None:
    # Written to, page by page: memory that is only reserved counts for nothing.
    block = bytearray(int(number_of(step, "mb", 1)) * _MEGABYTE)
    block[::4096] = b"\1" * len(range(0, len(block), 4096))
    Scripted.kept.append(block)


def _send(step: Step, context: Context) -> None:
    destination = limits.checked_destination(str(step.get("destination", "")))
    for index in range(int(number_of(step, "count", 1))):
        context.send(destination, str(step.get("body", "")), {"index": index})


def _acknowledge(step: Step, context: Context) -> None:
    named = str(step.get("id") or context.acknowledgement_id)
    try:
        state = context.acknowledge(
            named, str(step.get("action", "COMMIT")), timeout=number_of(step, "timeout", 20)
        )
    except AcknowledgementRefused as refused:
        state = f"refused: {refused}"
    if truth := context.parameters.get("truth_file"):
        _write(str(truth), {"answered": named, "state": state})


_ACTS: dict[str, Callable[[Step, Context], None]] = {
    "ok": _ok,
    "raise": _raise,
    "temporary": _temporary,
    "invalid": _invalid,
    "exit": _exit,
    "kill": _kill,
    "sleep": _sleep,
    "allocate": _allocate,
    "send": _send,
    "acknowledge": _acknowledge,
}
