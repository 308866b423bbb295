from tests.changed.functions import WHOLE, changed_in, executed_in, functions

SOURCE = '''\
LIMIT = 3

@decorated
def outer(
    first, second=LIMIT,
):
    """Text."""
    def inner():
        return 1
    return inner

class Rule:
    name = "rule"

    async def decide(self):
        return 2
'''


def test_a_changed_line_belongs_to_the_innermost_function() -> None:
    lines = {1: WHOLE, 3: "outer", 5: "outer", 9: "outer.inner", 10: "outer", 13: WHOLE, 16: "Rule.decide"}

    assert {line: changed_in(SOURCE, {line}) for line in lines} == {line: {name} for line, name in lines.items()}


def test_heads_that_run_at_import_execute_no_function() -> None:
    spans = functions(SOURCE)

    assert executed_in(spans, {1, 3, 4, 12, 13, 15}) == set()
    assert executed_in(spans, {1, 8, 10, 16}) == {"outer.inner", "outer", "Rule.decide"} - {"outer.inner"}


def test_a_source_that_is_no_python_has_no_functions() -> None:
    assert functions("def (") == [] and changed_in("def (", {1}) == {WHOLE}
