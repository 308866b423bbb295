from hypothesis import given
from hypothesis import strategies as st

from tests.changed.order import FIRST, Portion, Ranking, left_out, nearness, portions

FILES = ("t/a/test_one.py", "t/a/test_two.py", "t/b/test_three.py", "t/b/test_four.py")
ONE, TWO, THREE, FOUR = FILES
NAMES = st.builds("{}::test_{}".format, st.sampled_from([*FILES, "t/gone/test_away.py"]), st.integers(0, 30))


def test_changed_tests_then_those_that_execute_the_change_then_near_ones_then_the_rest() -> None:
    ranking = Ranking(
        FILES,
        changed={FOUR},
        touching={
            f"{THREE}::test_wide": (-1, 90),
            f"{THREE}::test_narrow": (-1, 2),
            f"{FOUR}::test_it": (-5, 1),
        },
        nearness={TWO: 1.2, ONE: 0.4},
    )

    assert portions(ranking) == [
        Portion(FOUR),
        Portion(THREE, (f"{THREE}::test_narrow", f"{THREE}::test_wide")),
        Portion(TWO),
        Portion(ONE),
        Portion(THREE),
    ]


def test_each_file_has_its_best_tests_run_before_any_has_more() -> None:
    many = {f"{ONE}::test_{n}": (-1.0, n) for n in range(FIRST + 1)}
    ordered = portions(Ranking(FILES, touching=many | {f"{TWO}::test_it": (-0.1, 500)}, approved={FOUR}))

    assert [(each.file, len(each.names or ())) for each in ordered[:4]] == [
        (ONE, FIRST),
        (TWO, 1),
        (FOUR, 0),
        (ONE, 1),
    ]


def test_without_a_map_the_nearest_come_first_and_with_one_the_cheapest_of_equals() -> None:
    assert portions(Ranking(FILES, nearness={THREE: 2}))[0] == Portion(THREE)
    known = dict.fromkeys(FILES, 1)
    costs = {ONE: 3.0, TWO: 1.0, THREE: 2.0, FOUR: 9.0}
    assert [each.file for each in portions(Ranking(FILES, tests=known, seconds=costs))] == [
        TWO,
        THREE,
        ONE,
        FOUR,
    ]


def test_a_file_that_the_map_does_not_know_comes_before_and_one_without_chosen_tests_last() -> None:
    ordered = portions(Ranking(FILES, tests={ONE: 0, TWO: 1, FOUR: 1}, nearness={ONE: 0.9}))

    assert [portion.file for portion in ordered] == [THREE, TWO, FOUR, ONE]


@given(
    st.dictionaries(NAMES, st.tuples(st.floats(-9, 0), st.integers(1, 99))),
    st.sets(st.sampled_from(FILES)),
    st.sets(st.sampled_from(FILES)),
    st.dictionaries(st.sampled_from(FILES), st.floats(0, 2)),
)
def test_each_file_is_run_whole_once_and_no_test_is_named_twice(
    touching: dict[str, tuple[float, int]], changed: set[str], approved: set[str], near: dict[str, float]
) -> None:
    ordered = portions(Ranking(FILES, changed=changed, touching=touching, approved=approved, nearness=near))
    named = [name for portion in ordered for name in portion.names or ()]

    assert sorted(portion.file for portion in ordered if portion.names is None) == sorted(FILES)
    assert len(named) == len(set(named)) and all(name.startswith(FILES) for name in named)


def test_imports_a_conftest_above_and_words_of_a_path_make_a_file_near() -> None:
    near = nearness(FILES, {ONE: 1, TWO: 4}, ["dlq/three.py"], ["t/b"])

    assert (near[ONE], near[TWO], near[FOUR]) == (1, 0.25, 1)
    assert near[THREE] == 2, "below the conftest, and of the same name"


def test_left_out_are_tests_that_did_not_run() -> None:
    assert list(left_out(FILES[:3], {ONE: 3, TWO: 2, THREE: 0}, {ONE: 1, TWO: 2})) == [(ONE, 2)]
