"""What each operation is tried with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agents.models import Pool
from console.operations.operation import Operation


@dataclass(frozen=True, slots=True)
class Case:
    """`make` gives an object with which it can be done; `right` is the permission for it, and `seeing` the
    one to see the object, empty: as its resource says; `or_seeing` is enough for that too. `given`: its
    inputs, or what makes them. `detail`: of the audit's entry, beside instants, or what finds it then;
    `target`: of that, by what was made, where it is not the object."""

    operation: type[Operation[Any]]
    make: Callable[[Pool], Any]
    right: str
    given: dict[str, Any] | Callable[[Pool], dict[str, Any]] = field(default_factory=dict)
    detail: dict[str, Any] | Callable[[], dict[str, Any]] = field(default_factory=dict)
    seeing: str = ""
    target: Callable[[Any], str] | None = None
    or_seeing: str = ""

    def inputs(self, pool: Pool) -> dict[str, Any]:
        return self.given(pool) if callable(self.given) else self.given

    def expected(self) -> dict[str, Any]:
        return self.detail() if callable(self.detail) else self.detail
