"""What separates dead letters from messages that recovered."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from pipeline.jobs.poison_profile import described, endings, poison_counts, poison_profile, value_bucket
from pipeline.results import POISON_COUNTS, POISON_PROFILE
from tests.pipeline.rows import at, frame


def test_endings_are_counted_by_what_the_latest_protocol_says(session: SparkSession) -> None:
    letters = frame(
        session,
        "letters",
        {"message_key": "m1"},
        {"message_key": "m1"},
        {"message_key": ""},
        {"message_key": "m9"},
    )
    recovered = frame(
        session, "recovered",
        {"message_key": "m2", "occurred_at": at(9)}, {"message_key": "m1", "occurred_at": at(9)},
        {"message_key": "m3", "setting_key": "bills", "occurred_at": at(9)},
    )  # fmt: skip
    protocols = frame(
        session, "protocols",
        {"message_key": "m1", "occurred_at": at(1), "properties": '{"kind": "old"}'},
        {"message_key": "m1", "occurred_at": at(2), "properties": '{"kind": "new", "n": 40}',
        "body_size": 100},
        {"message_key": "m2", "occurred_at": at(1), "properties": "{}", "body_size": 3},
        {"message_key": "m3", "setting_key": "bills", "occurred_at": at(1), "properties": '{"kind": null}'},
        {"message_key": "", "occurred_at": at(1), "properties": '{"kind": "none"}'},
    )  # fmt: skip

    wanted = [
        ("orders", "", "", 2, 2), ("orders", "kind", "new", 2, 1), ("orders", "n", "[32, 64)", 2, 1),
        ("orders", "body_size", "[64, 128)", 2, 1), ("orders", "body_size", "3", 0, 1),
        ("bills", "", "", 0, 1), ("bills", "body_size", "0", 0, 1),
    ]  # fmt: skip
    counted = poison_counts(described(endings(letters, recovered), protocols))
    assertDataFrameEqual(counted, session.createDataFrame(wanted, POISON_COUNTS))


def test_a_number_is_told_by_its_power_of_two_and_a_text_as_it_is(session: SparkSession) -> None:
    cases = {
        "15": "15", "16": "[16, 32)", "-16.5": "-[16, 32)", "1024": "[1024, 2048)", "1e300": "1e300",
        "NaN": "NaN",
        "EU": "EU", "true": "true", "": "", "x" * 99: "x" * 60,
    }  # fmt: skip
    texts = session.createDataFrame([(each,) for each in cases], "text string")
    assert {row[0]: row[1] for row in texts.select("text", value_bucket(F.col("text"))).collect()} == cases


def test_only_the_most_frequent_values_of_a_property_are_kept(session: SparkSession) -> None:
    rows = [("orders", 1, 0, f'{{"id": "m{number}", "kind": "a"}}', 1) for number in range(300)]
    made = session.createDataFrame(
        rows, "setting_key string, dead long, recovered long, properties string, body_size long"
    )
    by_property = {
        row["property"]: row["count"] for row in poison_counts(made).groupBy("property").count().collect()
    }

    assert by_property == {"": 1, "kind": 1, "body_size": 1, "id": 200}


def test_marks_that_are_dead_more_often_than_others_are_told_with_support_and_lift(
    session: SparkSession,
) -> None:
    part = [("orders", "", "", 10, 30), ("orders", "region", "EU", 8, 2), ("orders", "region", "US", 2, 28)]
    counts = [
        *part,
        ("orders", "kind", "rare", 2, 0),
        ("orders", "kind", "all", 10, 30),
        ("bills", "", "", 0, 4),
    ]
    more = [("orders", "", "", 10, 0), ("orders", "region", "EU", 2, 0)]

    # 10 of 12 from the EU are dead, of all 20 of 50.
    wanted = [("orders", "region", "EU", 10, 2, 12 / 50, (10 / 12) / (20 / 50))]
    found = poison_profile(session.createDataFrame([*counts, *more], POISON_COUNTS))
    assertDataFrameEqual(found, session.createDataFrame(wanted, POISON_PROFILE))
