from tests.changed.functions import LAST, WHOLE, changed_in, executed_in, functions

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

    assert {line: list(changed_in(SOURCE, {line})) for line in lines} == {
        line: [name] for line, name in lines.items()
    }
    assert changed_in(SOURCE, {2, 11}) == {}, "empty lines"


def test_lines_are_counted_from_the_first_one_of_their_function() -> None:
    assert changed_in(SOURCE, {3, 5, 10}) == {"outer": 1 << 0 | 1 << 2 | 1 << 7}
    assert changed_in("\n\n" + SOURCE, {5, 7, 12}) == changed_in(SOURCE, {3, 5, 10})
    long = "def long():\n" + "    x = 1\n" * 200
    assert changed_in(long, {2, 100, 200}) == {"long": 1 << 1 | 1 << LAST}


def test_heads_that_run_at_import_execute_no_function() -> None:
    spans = functions(SOURCE)

    assert executed_in(spans, {1, 3, 4, 12, 13, 15}) == {}
    assert executed_in(spans, {1, 8, 10, 16}) == {"outer": 1 << 5 | 1 << 7, "Rule.decide": 1 << 1}


def test_a_source_that_is_no_python_has_no_functions() -> None:
    assert functions("def (") == [] and list(changed_in("def (", {1})) == [WHOLE]
