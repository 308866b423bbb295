"""Which server fails more often than the others of its setting, by counts alone."""

import random
from itertools import pairwise
from math import comb

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
        "10 of 100 beside none", "the other one", "one of four", "many", "very many", "alike", "all fail",
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


def test_many_failures_are_judged_as_few_are() -> None:
    below = chance_of_failures(Attempts(5000, 550), Attempts(5000, MOST_EXACT - 550))
    above = chance_of_failures(Attempts(5000, 551), Attempts(5000, MOST_EXACT - 550))
    assert above == pytest.approx(below, rel=0.25)
    chances = [chance_of_failures(Attempts(5000, n), Attempts(5000, 2000)) for n in (2000, 2100, 2300)]
    assert all(more < fewer for fewer, more in pairwise(chances))
