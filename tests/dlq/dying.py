"""Processes that die: before a statement to the database, before a call of the broker, or after it; and calls
and answers that get lost on their way."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from broker.port import BrokerError, BrokerTimeout, Browsed, Outgoing


class Died(BaseException):
    """The process ends here: nothing after this instruction happens, what was not committed never did."""


@dataclass
class Instructions:
    """What a process does to the outside, counted. `until_death`: it dies at this one, and does nothing more
    whatever its code says. `until_unheard`: this call never reaches the broker. `until_lost`: this call's
    answer never comes back. 0: never."""

    until_death: int = 0
    until_unheard: int = 0
    until_lost: int = 0
    dead: bool = False

    def one(self) -> None:
        if self.until_death:
            self.until_death -= 1
            self.dead = not self.until_death
        if self.dead:
            raise Died

    def stop(self) -> None:
        self.until_death = self.until_unheard = self.until_lost = 0
        self.dead = False

    def ask(self) -> None:
        self.one()
        if self.until_unheard:
            self.until_unheard -= 1
            if not self.until_unheard:
                raise BrokerTimeout("no answer in time: it was not heard")

    def answer(self) -> None:
        if self.until_lost:
            self.until_lost -= 1
            if not self.until_lost:
                raise BrokerTimeout("no answer in time: it was done")
        self.one()

    def statement(self, execute: Callable[..., Any], sql: str, *arguments: Any) -> Any:
        """What a dead process had not committed is undone by the database."""
        if not (self.dead and sql.startswith("ROLLBACK")):
            self.one()
        return execute(sql, *arguments)


@dataclass(frozen=True)
class Trouble:
    """Of one process, see `Instructions`."""

    death: int = 0
    unheard: int = 0
    lost: int = 0

    def prepare(self, instructions: Instructions) -> None:
        instructions.until_death, instructions.until_unheard = self.death, self.unheard
        instructions.until_lost = self.lost


NONE = Trouble()


class Threads:
    """In place of a pool of one thread: what is asked of it is done at once, or when its answer is awaited. A
    process that died before that has asked, or it has not."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def __call__(self, *_: Any) -> "Threads":
        return self

    def __enter__(self) -> "Threads":
        return self

    def __exit__(self, *_: Any) -> None: ...

    def submit(self, work: Callable[[], Any]) -> Any:
        return _Now(work) if self._chance.random() < 0.5 else _Awaited(work)


class _Now:
    def __init__(self, work: Callable[[], Any]) -> None:
        self._answer: Any = None
        self._error: BaseException | None = None
        try:
            self._answer = work()
        except (BrokerError, Died) as error:
            self._error = error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._answer


@dataclass
class _Awaited:
    work: Callable[[], Any]

    def result(self) -> Any:
        return self.work()


class Wire:
    """A part of the broker's port, over which a process may die and answers may be lost."""

    def __init__(self, inner: Any, instructions: Instructions) -> None:
        self._inner, self._instructions = inner, instructions

    def call(self, *arguments: Any) -> Any:
        return self._asked(lambda: self._inner.call(*arguments))

    def attribute(self, *arguments: Any) -> Any:
        return self._asked(lambda: self._inner.attribute(*arguments))

    def attributes(self, *arguments: Any) -> Any:
        return self._asked(lambda: self._inner.attributes(*arguments))

    def publish(self, messages: Sequence[Outgoing]) -> None:
        self._asked(lambda: self._inner.publish(messages))

    def browse(self, *arguments: Any, **options: Any) -> Iterator[Browsed]:
        yield from self._asked(lambda: list(self._inner.browse(*arguments, **options)))

    def walk(self, address: str, queue: str) -> Iterator[list[bytes]]:
        """Two letters at a time: other things happen in between."""
        lying = [each.encoded for each in self.browse(address, queue, limit=1_000_000)]
        for start in range(0, len(lying), 2):
            self._instructions.one()
            yield lying[start : start + 2]

    def close(self) -> None: ...

    def _asked(self, work: Callable[[], Any]) -> Any:
        self._instructions.ask()
        answer = work()
        self._instructions.answer()
        return answer
