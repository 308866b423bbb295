"""The back-test says what the breaker itself says, fed with one outcome after the other."""

from collections import Counter
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.jobs.breaker_backtest import (
    breaker_backtest,
    breaker_suggestions,
    lives,
    steps,
    taken_back,
    totals,
    trips_of_runs,
)
from pipeline.results import BACKTEST_STEPS, BREAKER_BACKTEST, BREAKER_SUGGESTIONS, SETTINGS
from tests.pipeline.histories import History, histories
from tests.pipeline.rows import at, frame

ENDED = at(0) + timedelta(days=2)
GRID = range(3, 31)


def settings(session: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return session.createDataFrame(list(rows) or [("orders", 30, 10, "ANY", True, False)], SETTINGS)


def stepped(session: SparkSession, made: list[History]) -> DataFrame:
    protocols = frame(session, "protocols", *(row for each in made for row in each.rows))
    recovered = frame(session, "recovered", *(row for each in made for row in each.recovered))
    activations = frame(
        session, "activations",
        *({"id": each.activation, "ended_at": ENDED,
        "launched_with": f'{{"count_once": {str(each.once).lower()}}}'}
          for each in made),
    )  # fmt: skip
    runs = frame(
        session, "runs",
        *({"activation": each.activation, "server": run.server, "epoch": run.epoch}
          for each in made for run in each.runs.values()),
    )  # fmt: skip
    lived = lives(activations, runs, settings(session))
    return steps(trips_of_runs(protocols, lived, some_once=any(each.once for each in made)), lived, recovered)


def test_a_thousand_random_histories_trip_as_the_breaker_does(session: SparkSession) -> None:
    made = histories(1000, seed=20260301)
    found = {
        (row["activation"], row["m"], row["mode"]): (
            row["at"].replace(tzinfo=at(0).tzinfo),
            row["saved"],
            row["false_trip"],
        )
        for row in stepped(session, made).collect()
        if row["m"]
    }

    wanted = {}
    for each in made:
        for m in GRID:
            for mode in ("any", "many"):
                if (trip := each.expected(m, mode)) is not None:
                    wanted[each.activation, m, mode] = trip
    assert found == wanted
    kinds = Counter((mode, false) for (_a, _m, mode), (_at, _saved, false) in wanted.items())
    assert min(kinds[mode, false] for mode in ("any", "many") for false in (True, False)) > 100


def rows(session: SparkSession, *every: dict[str, Any], servers: int = 1, once: bool = False) -> list[Any]:
    made = History("a1", once)
    made.rows = [{"activation": "a1", "occurred_at": at(number), **row} for number, row in enumerate(every)]
    protocols = frame(session, "protocols", *made.rows)
    told = f'{{"count_once": {str(once).lower()}}}'
    activations = frame(session, "activations", {"id": "a1", "ended_at": ENDED, "launched_with": told})
    runs = frame(session, "runs", *({"server": f"srv-{number + 1}"} for number in range(servers)))
    lived = lives(activations, runs, settings(session))
    done = steps(trips_of_runs(protocols, lived, some_once=once), lived, frame(session, "recovered"))
    return [(row["m"], row["mode"], row["saved"]) for row in done.orderBy("m", "mode").collect() if row["m"]]


def test_one_of_a_kind_trips_up_to_5_and_a_second_up_to_8(session: SparkSession) -> None:
    """N is M / 3 rounded down: 1 for 3, 4 and 5, 2 for 6, 7 and 8."""
    found = rows(session, {}, {})

    assert found == [(m, mode, 1 if m < 6 else 0) for m in range(3, 9) for mode in ("any", "many")]


def test_many_needs_a_second_server_where_there_is_one(session: SparkSession) -> None:
    found = rows(session, {}, {"server": "srv-2"}, {}, servers=2)

    assert [(m, saved) for m, mode, saved in found if mode == "any"] == [
        (3, 2),
        (4, 2),
        (5, 2),
        (6, 0),
        (7, 0),
        (8, 0),
    ]
    assert [(m, saved) for m, mode, saved in found if mode == "many"] == [(3, 1), (4, 1), (5, 1)]


def test_a_message_counts_once_where_the_setting_said_so(session: SparkSession) -> None:
    same = [{"message_key": "m1", "attempt": number} for number in (1, 2, 3)]

    assert {m for m, _mode, _saved in rows(session, *same, once=True)} == {3, 4, 5}
    assert {m for m, _mode, _saved in rows(session, *same, once=False)} == set(range(3, 12))


def test_every_limit_has_a_row_and_what_is_looked_at_again_counts_once(session: SparkSession) -> None:
    step = ("a1", "orders", ENDED, 3, "any", at(5), 4, True)
    other = ("a2", "orders", ENDED, 3, "any", at(3), 1, False)
    looked = [(each, "orders", ENDED, 0, "", None, 0, False) for each in ("a1", "a2")]
    first = totals(session.createDataFrame([step, other, *looked], BACKTEST_STEPS))
    again = totals(
        session.createDataFrame(
            [("a1", "orders", ENDED, 3, "any", at(5), 6, True), looked[0]], BACKTEST_STEPS
        )
    )
    old = totals(session.createDataFrame([step, looked[0]], BACKTEST_STEPS))
    done = breaker_backtest(first.unionByName(taken_back(old)).unionByName(again))

    wanted: list[tuple[Any, ...]] = [
        ("orders", m, mode, 2, 0, 0, 0, None, None) for m in GRID for mode in ("any", "many")
    ]
    wanted[0] = ("orders", 3, "any", 2, 2, 7, 1, at(3), at(5))
    assertDataFrameEqual(done, session.createDataFrame(wanted, BREAKER_BACKTEST))


def test_the_smallest_limit_with_few_false_trips_is_suggested(session: SparkSession) -> None:
    def line(key: str, m: int, trips: int, false: int) -> tuple[Any, ...]:
        return (key, m, "any", 9, trips, 10 * trips, false, None, None)

    backtest = session.createDataFrame(
        [
            line("late", 3, 9, 5), line("late", 6, 5, 0), line("late", 10, 3, 0),
            line("early", 3, 9, 5), line("early", 6, 5, 4), line("early", 10, 3, 0),
            line("fits", 6, 9, 0), line("few", 3, 2, 0), line("gone", 3, 9, 0),
        ],
        BREAKER_BACKTEST,
    )  # fmt: skip
    now = {"late": 10, "early": 6, "fits": 6, "few": 10, "none": -7}
    of = settings(session, *((key, 30, m, "ANY", True, False) for key, m in now.items()))

    def fact(m: int, trips: int, false: int) -> str:
        return f'{{"m":{m},"trips":{trips},"deliveries_saved":{10 * trips},"false_trips":{false}}}'

    wanted = [
        ("late", 10, 6, "earlier_saves", f'{{"runs":9,"now":{fact(10, 3, 0)},"suggested":{fact(6, 5, 0)}}}'),
        (
            "early",
            6,
            10,
            "later_avoids_false",
            f'{{"runs":9,"now":{fact(6, 5, 4)},"suggested":{fact(10, 3, 0)}}}',
        ),
        ("fits", 6, 6, "as_it_is", f'{{"runs":9,"now":{fact(6, 9, 0)},"suggested":{fact(6, 9, 0)}}}'),
        ("few", 10, 10, "too_little", '{"runs":9}'),
        ("none", -7, -7, "too_little", '{"runs":0}'),
    ]
    assertDataFrameEqual(
        breaker_suggestions(backtest, of), session.createDataFrame(wanted, BREAKER_SUGGESTIONS)
    )
