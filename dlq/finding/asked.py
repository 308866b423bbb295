"""What a filter of dead letters asks for, as conditions that pages, counts and jobs use alike."""

from dataclasses import dataclass

from django.db.models import Q

from dlq.search.matching import Wanted


@dataclass(frozen=True, slots=True)
class Condition:
    """`by_index`: with queues and states before it an index holds just the letters that match, so how many
    these are is told without reading others. `wanted`: the words that it stands for, found by their own
    index."""

    q: Q
    by_index: bool = False
    wanted: tuple[Wanted, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """`queues` None: every queue. `states` None: every state. All conditions hold together."""

    queues: tuple[str, ...] | None = None
    states: tuple[str, ...] | None = None
    conditions: tuple[Condition, ...] = ()

    @property
    def places(self) -> Q:
        """Queues and states."""
        where = Q()
        if self.queues is not None:
            where &= Q(queue__in=self.queues) if len(self.queues) != 1 else Q(queue=self.queues[0])
        if self.states is not None:
            where &= Q(state__in=self.states) if len(self.states) != 1 else Q(state=self.states[0])
        return where

    @property
    def q(self) -> Q:
        where = self.places
        for condition in self.conditions:
            where &= condition.q
        return where
