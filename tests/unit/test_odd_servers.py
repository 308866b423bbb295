"""Which server fails more often than the others of its setting, by counts alone."""

import random
from itertools import pairwise
from math import comb
from statistics import NormalDist

import pytest

from failures.error_groups.rules import MOST_EXACT, Attempts, chance_of_failures, odd_servers


def odd(*counts: tuple[int, int]) -> list[str]:
    """`counts`: failed of made, of srv-1, srv-2 and so on."""
    servers = {f"srv-{n}": Attempts(made, failed) for n, (failed, made) in enumerate(counts, start=1)}
    return sorted(odd_servers(servers))


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([(10, 100), (0, 100)], ["srv-1"]),
        ([(0, 100), (10, 100)], ["srv-2"]),
        ([(10, 100), (0, 100), (0, 100), (0, 100)], ["srv-1"]),
        ([(500, 1000), (20, 1000)], ["srv-1"]),
        ([(300, 10_000), (900, 1_000_000)], ["srv-1"]),
        ([(2000, 10_000), (1000, 10_000)], ["srv-1"]),
        ([(10, 20), (0, 100)], ["srv-1"]),
        ([(5, 100), (0, 100_000)], ["srv-1"]),
        ([(4, 100), (0, 100_000)], []),
        ([(10, 100), (10, 100)], []),
        ([(100, 100), (100, 100)], []),
        ([(0, 100), (0, 100)], []),
        ([(4, 4), (0, 100)], []),
        ([(4, 100), (0, 100)], []),
        ([(10, 19), (0, 100)], []),
        ([(10, 100), (0, 19)], []),
        ([(10, 100)], []),
        ([(19_000, 100_000), (10_000, 100_000)], []),
        ([], []),
    ],
    ids=[
        "10 of 100 beside none", "the other one", "one of four", "many", "very many", "just twice as often",
        "20 attempts", "five failures", "four failures beside many attempts", "alike", "all fail",
        "none fails", "four attempts", "four failures", "19 attempts", "19 attempts elsewhere", "alone",
        "less than twice as often", "nothing",
    ],
)  # fmt: skip
def test_a_server_is_odd_only_where_chance_and_small_numbers_do_not_explain_it(
    counts: list[tuple[int, int]], found: list[str]
) -> None:
    assert odd(*counts) == found


@pytest.mark.parametrize(("rate", "servers"), [(0.02, 2), (0.1, 5), (0.3, 3)])
def test_servers_that_fail_alike_are_hardly_ever_called_odd(rate: float, servers: int) -> None:
    chance = random.Random(7)
    calls = 0
    for _ in range(400):
        counts = [(sum(chance.random() < rate for _ in range(120)), 120) for _ in range(servers)]
        calls += bool(odd(*counts))
    assert calls <= 4


def test_the_chance_is_that_of_the_hypergeometric_distribution() -> None:
    here, others = Attempts(12, 5), Attempts(30, 3)
    exact = sum(comb(12, k) * comb(30, 8 - k) for k in range(5, 9)) / comb(42, 8)
    assert chance_of_failures(here, others) == pytest.approx(exact)
    assert chance_of_failures(Attempts(100, 10), Attempts(100, 0)) == pytest.approx(
        comb(100, 10) / comb(200, 10)
    )


def exactly(here: Attempts, others: Attempts) -> float:
    made, failed = here.made + others.made, here.failed + others.failed
    some = range(here.failed, min(failed, here.made) + 1)
    return sum(comb(here.made, k) * comb(others.made, failed - k) for k in some) / comb(made, failed)


def test_up_to_a_thousand_failures_are_judged_exactly_and_more_by_the_normal_distribution() -> None:
    few, others = Attempts(3000, 520), Attempts(3000, MOST_EXACT - 520)
    assert MOST_EXACT == 1000
    assert chance_of_failures(few, others) == pytest.approx(exactly(few, others), rel=1e-6)
    more = Attempts(3000, 521)
    spread = (1001 / 6000 * 4999 / 6000 * 2 / 3000) ** 0.5
    normal = 1 - NormalDist().cdf((521 - 480) / 3000 / spread)
    assert chance_of_failures(more, others) == pytest.approx(normal, rel=1e-6)
    assert exactly(more, others) != pytest.approx(normal, rel=1e-3)


def test_where_all_or_none_fail_there_is_no_difference() -> None:
    assert chance_of_failures(Attempts(2000, 2000), Attempts(2000, 2000)) == 1.0
    assert Attempts(0, 0).rate == 0.0
    here, others = Attempts(10, 5), Attempts(3, 3)
    assert chance_of_failures(here, others) == pytest.approx(exactly(here, others))


def test_many_failures_are_judged_as_few_are() -> None:
    below = chance_of_failures(Attempts(5000, 550), Attempts(5000, MOST_EXACT - 550))
    above = chance_of_failures(Attempts(5000, 551), Attempts(5000, MOST_EXACT - 550))
    assert above == pytest.approx(below, rel=0.25)
    chances = [chance_of_failures(Attempts(5000, n), Attempts(5000, 2000)) for n in (2000, 2100, 2300)]
    assert all(more < fewer for fewer, more in pairwise(chances))
