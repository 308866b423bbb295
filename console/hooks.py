"""Describes what lower apps ask of higher ones, which they must not import. An app declares its hooks in its
`hooks`; a higher app implements them in a module that it imports when it is ready."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar
from uuid import UUID

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """Called, it gives the answers of all who implement it, in the order of their apps."""

    def __init__(self) -> None:
        self._implementations: list[Callable[P, R]] = []

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> list[R]:
        return [each(*args, **kwargs) for each in self._implementations]

    def implement(self, implementation: Callable[P, R]) -> Callable[P, R]:
        """Decorates what answers it."""
        self._implementations.append(implementation)
        return implementation


@dataclass(frozen=True, slots=True)
class MessageChanges:
    """What an edit changed in a message, as one person may see it: a list of `{"what", "before", "after"}`,
    hostile texts. `note` says why something of it is missing."""

    changes: Sequence[dict[str, Any]]
    note: str


# After the entry of a refused attempt, outside of its transaction: (what refused it, the action, who asked,
# the target of the entry).
refusal_kept: Hook[[Exception, str, Any, str], None] = Hook()
# Operations that a dead letter was part of, the latest ones.
operations_of_letter: Hook[[int], list[UUID]] = Hook()
# Who works on the jobs of each kind: `console.jobs.engine.Worker`s, which models must not be led to.
job_workers: Hook[[], Sequence[Any]] = Hook()
# A process that serves no pages begins: its name in the Procfile.
process_begins: Hook[[str], None] = Hook()
# Of entries of the audit, by their id: what was changed in a message, as this person may see it.
message_changes: Hook[[Sequence[Any], Any], dict[int, MessageChanges]] = Hook()
