"""No member before its predecessor finished well, whatever happens in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agents.groups.rules import GroupDecision, GroupStep, MemberFacts, next_step
from agents.models import ActivationState

ENDS = [
    state.value
    for state in ActivationState
    if state not in (ActivationState.PENDING, ActivationState.RUNNING)
]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5), st.sampled_from(ENDS), st.integers(0, 4))
def test_only_a_good_end_starts_the_next_one(plan: list[str], state: str, index: int) -> None:
    index = min(index, len(plan) - 1)
    decision = next_step(plan, index, MemberFacts(state, ended=True))
    last, good = index + 1 == len(plan), state == ActivationState.SUCCEEDED
    assert decision.step is (GroupStep.FAIL if not good else GroupStep.SUCCEED if last else GroupStep.START)
    assert next_step(plan, index, MemberFacts(state, ended=False)) == GroupDecision(GroupStep.WAIT, index)


def test_a_group_begins_with_the_member_at_its_place_and_ends_after_the_last() -> None:
    good = MemberFacts(ActivationState.SUCCEEDED, ended=True)
    assert next_step(["a", "b"], 0, None) == GroupDecision(GroupStep.START)
    assert next_step(["a", "b"], 1, None) == GroupDecision(GroupStep.START, 1)
    assert next_step(["a", "b"], 0, good) == GroupDecision(GroupStep.START, 1)
    assert next_step(["a", "b"], 1, MemberFacts(ActivationState.FAILED, ended=True)) == GroupDecision(
        GroupStep.FAIL, 1
    )
    assert next_step(["a", "b"], 1, good) == GroupDecision(GroupStep.SUCCEED, 2)
    for member in (None, good):
        assert next_step(["a", "b"], 2, member) == GroupDecision(GroupStep.SUCCEED, 2)


class Passes(RuleBasedStateMachine):
    """One pass with a starter that may die after any step, and members that end in any way."""

    @initialize(size=st.integers(1, 5))
    def begin(self, size: int) -> None:
        self.plan = [f"m{number}" for number in range(size)]
        self.index = 0
        self.begun: dict[int, MemberFacts] = {}
        self.order: list[int] = []
        self.ended: GroupStep | None = None

    def facts(self) -> MemberFacts | None:
        return self.begun.get(self.index)

    @rule(dies=st.booleans())
    def look(self, dies: bool) -> None:
        decision = next_step(self.plan, self.index, self.facts())
        if dies or self.ended or decision.step is GroupStep.WAIT:
            return
        if decision.step is GroupStep.START:
            self.index = decision.index
            self.begun[self.index] = MemberFacts(ActivationState.RUNNING, ended=False)
            self.order.append(self.index)
        else:
            self.ended = decision.step

    @precondition(lambda self: any(not facts.ended for facts in self.begun.values()))
    @rule(state=st.sampled_from(ENDS))
    def end(self, state: str) -> None:
        self.begun[self.index] = MemberFacts(state, ended=True)

    @invariant()
    def strict_order(self) -> None:
        assert self.order == list(range(len(self.order)))
        for index in self.order[:-1]:
            assert self.begun[index] == MemberFacts(ActivationState.SUCCEEDED, ended=True)
        if self.ended is GroupStep.SUCCEED:
            assert len(self.order) == len(self.plan)
            assert self.begun[len(self.plan) - 1].state == ActivationState.SUCCEEDED


# As dear as with the database: many histories.
TestPasses = pytest.mark.db(Passes.TestCase)
