"""Agents by name, and the decorator that registers them: importing a module of KMA_AGENTS fills this in."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kma.sdk.errors import AgentNameTaken, UnknownAgent

MESSAGE = "message"
STANDALONE = "standalone"
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_WANTED = "run_agent must accept (message, context), or (context) for a standalone agent"


@dataclass(frozen=True, slots=True)
class Registered:
    """`create` makes a new agent object; `run_agent` of that object is called."""

    name: str
    kind: str
    version: str
    summary: str
    create: Callable[[], Any]


_AGENTS: dict[str, Registered] = {}


def register(name: str, version: str, summary: str, target: Any) -> None:
    """Registers a class with a `run_agent` method, or a function that is `run_agent` itself."""
    if not name or len(name) > 100 or not name.isprintable() or name != name.strip():
        raise ValueError(
            f"{name!r} is not an agent name: use 1 to 100 printable characters, without spaces at the ends"
        )
    taken = _AGENTS.get(name)
    if taken is not None and _origin(taken.create) != _origin(target):
        raise AgentNameTaken(
            f"agent {name!r} is registered by {_origin(taken.create)} and by {_origin(target)}"
        )
    _AGENTS[name] = registration_of(name, version, summary, target)


def registration_of(name: str, version: str, summary: str, target: Any) -> Registered:
    """What `register` keeps, without registering. Raises TypeError when `target` is no agent."""
    is_class = inspect.isclass(target)
    run = getattr(target, "run_agent", None) if is_class else target
    if not callable(run):
        raise TypeError(f"agent {name!r}: {target!r} has no run_agent")
    create = target if is_class else _always(target)
    has_self = is_class and not isinstance(
        inspect.getattr_static(target, "run_agent"), (staticmethod, classmethod)
    )
    return Registered(name, _kind(name, run, has_self), version, _summary(summary, target), create)


def find(name: str) -> Registered:
    """Raises UnknownAgent."""
    try:
        return _AGENTS[name]
    except KeyError:
        offered = ", ".join(sorted(_AGENTS)) or "none"
        raise UnknownAgent(f"unknown agent {name!r}; available: {offered}") from None


def offered() -> list[Registered]:
    return [_AGENTS[name] for name in sorted(_AGENTS)]


class _Function:
    """A function as an agent object."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.run_agent = function


def _always(function: Callable[..., Any]) -> Callable[[], Any]:
    def create() -> _Function:
        return _Function(function)

    create.__module__, create.__qualname__ = function.__module__, function.__qualname__
    return create


def _origin(target: Any) -> str:
    return f"{target.__module__}.{target.__qualname__}"


def _kind(name: str, run: Callable[..., Any], method: bool) -> str:
    """By the parameters that a caller must give. Raises TypeError for what could never be called rightly."""
    if (
        inspect.iscoroutinefunction(run)
        or inspect.isgeneratorfunction(run)
        or inspect.isasyncgenfunction(run)
    ):
        raise TypeError(f"agent {name!r}: run_agent must not be async or a generator")
    parameters = list(inspect.signature(run).parameters.values())[1 if method else 0 :]
    needed = [one for one in parameters if one.default is one.empty and one.kind in _POSITIONAL]
    rest = [
        one
        for one in parameters
        if one.default is one.empty and one.kind not in (*_POSITIONAL, one.VAR_KEYWORD)
    ]
    if len(needed) not in (1, 2) or rest:
        raise TypeError(f"agent {name!r}: {_WANTED}, not {inspect.signature(run)}")
    if len(needed) == 1 and needed[0].name in ("message", "msg"):
        raise TypeError(f"agent {name!r}: {_WANTED}; the context parameter is missing")
    return MESSAGE if len(needed) == 2 else STANDALONE


def _summary(summary: str, target: Any) -> str:
    text = summary or inspect.getdoc(target) or ""
    return text.strip().split("\n", 1)[0][:200]


T = TypeVar("T")


def agent(name: str, *, version: str = "", summary: str = "") -> Callable[[T], T]:
    """Registers a class with `run_agent(self, message, context)`, or a function `(message, context)`, under
    `name`; without `message` it is a standalone agent.

    `summary` is the first line of the docstring unless given. Name, version and summary are shown in the MA.
    """

    def decorate(target: T) -> T:
        register(name, version, summary, target)
        return target

    return decorate
