"""How an activation went."""

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.jobs.activation_health import activation_health
from pipeline.results import ACTIVATION_HEALTH
from tests.pipeline.rows import at, frame


def test_an_activation_is_told_from_its_failures_runs_trip_and_repair(session: SparkSession) -> None:
    activations = frame(
        session, "activations",
        {"id": "a1", "started_at": at(0), "ended_at": at(100)},
        {"id": "a2", "started_at": at(200), "ended_at": at(300.5)},
    )  # fmt: skip
    runs = frame(
        session,
        "runs",
        {"handled": 10},
        {"server": "srv-2", "handled": 6},
        {"activation": "a9", "handled": 1},
    )
    protocols = frame(
        session, "protocols",
        {"occurred_at": at(10)}, {"occurred_at": at(12), "attempt": 2},
        {"occurred_at": at(14), "attempt": 3, "temporary": True}, {"occurred_at": at(8), "server": "srv-2"},
    )  # fmt: skip
    trips = frame(
        session, "trips",
        {"id": 1, "at": at(20), "enabled_again_at": at(60)}, {"id": 2, "at": at(90)},
        {"id": 3, "activation": None, "at": at(1)},
    )  # fmt: skip
    recovered = frame(
        session, "recovered",
        {"occurred_at": at(30)}, {"occurred_at": at(75), "activation": "a2"},
        {"occurred_at": at(65), "setting_key": "bills"}, {"occurred_at": at(80)},
    )  # fmt: skip

    wanted = [
        ("a1", "orders", at(0), at(100), 100.0, 16, 4, 200.0, at(8), at(20), 12.0, 55.0, 2, 0.25),
        ("a2", "orders", at(200), at(300.5), 100.5, 0, 0, None, None, None, None, None, 0, None),
    ]
    assertDataFrameEqual(
        activation_health(activations, runs, protocols, trips, recovered),
        session.createDataFrame(wanted, ACTIVATION_HEALTH),
    )


def test_a_success_a_month_after_the_repair_says_nothing(session: SparkSession) -> None:
    month = 30 * 86_400
    found = activation_health(
        frame(session, "activations", {"id": "a1", "started_at": at(0), "ended_at": at(9)}),
        frame(session, "runs"),
        frame(session, "protocols", {"occurred_at": at(7)}),
        frame(session, "trips", {"id": 1, "at": at(5), "enabled_again_at": at(6)}),
        frame(session, "recovered", {"occurred_at": at(month)}),
    ).first()

    assert found is not None
    assert (found["tripped_at"], found["seconds_to_repair"]) == (at(5).replace(tzinfo=None), None)
    assert found["seconds_to_trip"] is None  # it failed after the trip only
