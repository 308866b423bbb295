"""Version 3 of the wire beside version 4: what a KMA of before sends, has spooled or was told last, and what
it understands. JSON in, JSON out; what is of version 4 already stays as it is. Goes with version 5.
"""

from collections.abc import Mapping
from typing import Any

from contract.reasons import LEGACY

VERSION = 3

_KINDS = {"letter_outcome": "replay_outcome"}
_MESSAGE = {"given_back": "replayed", "letter_queue": "dead_letter_queue", "letter_id": "dead_letter_id"}
_DESIRED = {
    "breaker_m": "max_failures",
    "count_once": "count_message_once",
    "try_one_first": "trial_first",
    "retries_asked": "retries_requested",
    "give_up": "give_up_request",
}
_DESIRED_BACK = {new: old for old, new in _DESIRED.items()}


def heartbeat(data: Any) -> Any:
    """Of such a KMA, as version 4 says it, but for the number of the version. Its sentences stay sentences:
    which message blocks a subscription is not known of it."""
    if not isinstance(data, dict):
        return data
    found = {**data, "problems": _each(data.get("problems", []), _reason)}
    if "runs" in data:
        found["runs"] = _each(data["runs"], _report)
    return found


def message(data: Mapping[str, Any]) -> dict[str, Any]:
    """What such a KMA has kept of a message, as in its journal."""
    return {_MESSAGE.get(name, name): value for name, value in data.items()}


def record(kind: str, content: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Kind and content. Also of a KMA that was upgraded: its spool has them as they were written."""
    kind = _KINDS.get(kind, kind)
    known = content.get("message")
    if isinstance(known, dict) and not _MESSAGE.keys().isdisjoint(known):
        content = {**content, "message": message(known)}
    if kind == "interruption" and "m" in content:
        content = _renamed(content, {"m": "max_failures"})
    elif kind == "closing" and "reason" in content:
        content = {name: value for name, value in content.items() if name != "reason"}
    elif kind == "acknowledgement_ended" and isinstance(content.get("reason"), str):
        content = {**content, "reason": _reason(content["reason"]) if content["reason"] else None}
    return kind, content


def desired(data: Any) -> Any:
    """A desired state that such a KMA has kept."""
    return _with_runs(data, _DESIRED)


def reply(data: Any) -> Any:
    """To a heartbeat of such a KMA, from what version 4 answers."""
    return {**data, "version": VERSION, "desired": _with_runs(data["desired"], _DESIRED_BACK)}


def _with_runs(state: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(state, dict) or "runs" not in state:
        return state
    return {**state, "runs": _each(state["runs"], lambda run: _renamed(run, names))}


def _report(run: Any) -> Any:
    if not isinstance(run, dict) or "problem" not in run:
        return run
    others = {name: value for name, value in run.items() if name != "problem"}
    return {**others, "problems": [_reason(run["problem"])] if run["problem"] else []}


def _reason(text: Any) -> Any:
    return {"code": LEGACY, "params": {"text": text}} if isinstance(text, str) else text


def _each(items: Any, change: Any) -> Any:
    return [change(item) for item in items] if isinstance(items, list) else items


def _renamed(data: Any, names: Mapping[str, str]) -> Any:
    return {names.get(name, name): value for name, value in data.items()} if isinstance(data, dict) else data
