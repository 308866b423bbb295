"""What became of letters that were given back."""

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.jobs.replay_success import replay_success
from pipeline.results import REPLAY_SUCCESS
from tests.pipeline.rows import at, frame

HOUR, DAY = 3600, 86_400


def test_outcomes_are_counted_by_age_and_time_since_the_fix(session: SparkSession) -> None:
    replays = frame(
        session, "replays",
        {"died_at": at(0), "given_back_at": at(HOUR - 1), "outcome": "handled"},
        {"died_at": at(0), "given_back_at": at(HOUR), "outcome": "dead_again"},
        {"died_at": at(0), "given_back_at": at(HOUR + 5), "outcome": "handled"},
        {"died_at": at(0), "given_back_at": at(HOUR + 6), "outcome": "failed_again", "fingerprint": None},
        {"died_at": at(0), "given_back_at": at(40 * DAY), "outcome": "handled", "target_key": "bills"},
        {"died_at": at(0), "given_back_at": at(5), "outcome": "handled", "action": "discard"},
    )  # fmt: skip
    trips = frame(
        session, "trips",
        {"id": 1, "at": at(-9), "enabled_again_at": at(HOUR)}, {"id": 2, "at": at(-5)},
        {"id": 3, "at": at(-9), "setting_key": "bills", "enabled_again_at": at(DAY)},
    )  # fmt: skip

    wanted = [
        ("orders", "f1", "under_1h", "unknown", 1, 0, 0),
        ("orders", "f1", "under_1d", "under_1h", 1, 0, 1),
        ("orders", "", "under_1d", "under_1h", 0, 1, 0),
        ("bills", "f1", "older", "older", 1, 0, 0),
    ]
    assertDataFrameEqual(replay_success(replays, trips), session.createDataFrame(wanted, REPLAY_SUCCESS))
