"""What is old of all settings goes together, by the rule of each as it is at that chunk."""

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from agents.models import Activation, LaunchSetting, Pool
from console.database.json_values import WantedValue
from console.processes import record_heartbeat
from failures.models import FailureProtocol, RecoveredMessage
from failures.protocols.properties import INDEX
from retention import batches
from retention.models import RetentionRun
from retention.protocols import row_locations, setting_rule, sweep
from retention.protocols.holds import HOLDS, Hold
from retention.worker import run_retention_turn
from tests.web.retention_rows import DAY, NOW, activation, after_the_first, house, protocols, recoveries, told
from tests.web.rows import make_setting

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
AT_ONCE = timedelta(0)


@pytest.fixture(autouse=True)
def small_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "FIRST", 3)
    monkeypatch.setattr(batches, "LEAST", 2)
    monkeypatch.setattr(batches, "MOST", 5)
    monkeypatch.setattr(batches, "let_others_write", lambda took: None)


@pytest.fixture
def feed() -> None:
    """It is there, so letters keep nothing that is older than a few minutes."""
    record_heartbeat("feed", NOW)


@pytest.fixture
def nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(activation: UUID) -> Any:
        raise AssertionError(f"{activation} is gone through one by one")

    monkeypatch.setattr(setting_rule, "of_activation", look)


def apply(now: Any = NOW) -> RetentionRun:
    run = run_retention_turn(now, every=AT_ONCE)
    assert run is not None
    assert run.state == "done", run.problem
    return run


@pytest.mark.usefixtures("feed", "nothing_is_looked_at")
def test_all_settings_go_together_and_each_is_counted(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "FIRST", 100)
    made = house(pool, {"one": 7, "two": 11, "three": 1})
    recoveries(list(FailureProtocol.objects.filter(setting_key="two")))
    bad = activation(make_setting(pool, "bad"), 5, well=False)
    protocols(bad, 6, 5)
    transactions: list[Counter[UUID]] = []
    real = batches.Chunks.delete_of_many

    def noted(self: Any, *arguments: Any) -> Counter[UUID]:
        transactions.append(real(self, *arguments))
        return transactions[-1]

    monkeypatch.setattr(batches.Chunks, "delete_of_many", noted)
    run = apply()

    assert transactions[0] == {made["one"].pk: 7, made["two"].pk: 11, made["three"].pk: 1}
    assert set(FailureProtocol.objects.values_list("activation_uuid", flat=True)) == {bad.pk}
    assert not RecoveredMessage.objects.exists()
    assert told(run) == {
        ("protocols", "one", "well"): 7, ("protocols", "two", "well"): 11, ("protocols", "three", "well"): 1,
        ("recovered", "two", "well"): 11,
    }  # fmt: skip
    assert run.deleted == 30
    assert set(Activation.objects.filter(cleared=True)) == set(made.values())
    assert apply().deleted == 0


@pytest.mark.usefixtures("feed")
def test_what_goes_is_found_by_no_property_any_more(pool: Pool) -> None:
    made = house(pool, {"one": 7})
    FailureProtocol.objects.filter(activation_uuid=made["one"].pk).update(properties={"order": "A-1"})
    stays = activation(make_setting(pool, "bad"), 5, well=False)
    protocols(stays, 1, 5, properties={"order": "A-1"})
    wanted = [WantedValue("A-1")]
    before = INDEX.candidates(wanted, 20)

    apply()

    assert len(before) == 8
    assert INDEX.candidates(wanted, 20) == list(FailureProtocol.objects.values_list("pk", flat=True))
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {INDEX.name}")
            assert cursor.fetchone() == (1,)


@pytest.mark.usefixtures("feed")
@pytest.mark.parametrize("how_it_changes", ["late record", "newer one"])
def test_a_setting_that_turns_to_error_between_two_chunks_keeps_its_rows(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, how_it_changes: str
) -> None:
    made = house(pool, {"turning": 40, "steady": 40})

    def turn() -> None:
        if how_it_changes == "late record":
            Activation.objects.filter(pk=made["turning"].pk).update(well=False)
        else:
            activation(made["turning"].setting, 1, well=False, lasted=0.5)
        left_then.update(of_turning())

    def of_turning() -> set[UUID]:
        return set(FailureProtocol.objects.filter(setting_key="turning").values_list("pk", flat=True))

    left_then: set[UUID] = set()
    after_the_first(monkeypatch, turn)
    run = apply()

    assert of_turning() == left_then and len(left_then) >= 35
    assert not FailureProtocol.objects.filter(setting_key="steady").exists()
    assert told(run)["protocols", "steady", "well"] == 40
    assert told(run).get(("protocols", "turning", "well"), 0) == 40 - len(left_then)
    assert set(Activation.objects.filter(cleared=True)) == {made["steady"]}


@pytest.mark.usefixtures("feed", "nothing_is_looked_at")
def test_what_turns_to_error_while_others_go_is_not_begun(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "FIRST_GROUP", 1)
    early = house(pool, {"early": 10}, 9)["early"]
    late = house(pool, {"late": 10}, 5)["late"]
    after_the_first(monkeypatch, lambda: Activation.objects.filter(pk=late.pk).update(well=False))

    assert told(apply()) == {("protocols", "early", "well"): 10}
    assert set(FailureProtocol.objects.values_list("activation_uuid", flat=True)) == {late.pk}
    assert list(Activation.objects.filter(cleared=True)) == [early]


@pytest.mark.usefixtures("feed")
def test_what_a_keeper_keeps_stays(pool: Pool) -> None:
    made = house(pool, {"one": 10, "two": 10}, 20)
    # Received after what the keeper is done with, though it occurred long before.
    late = protocols(made["one"], 3, 20, received_at=NOW - 8 * DAY)
    quiet = NOW - 10 * DAY
    HOLDS["archive2"] = Hold(
        lambda picked, now: {each.id for each in picked if each.at >= quiet}, lambda _: quiet
    )
    try:
        run = apply()
    finally:
        del HOLDS["archive2"]

    assert set(FailureProtocol.objects.all()) == set(late)
    assert told(run) == {("protocols", "one", "well"): 10, ("protocols", "two", "well"): 10}
    assert run.figures.get(setting_key="one").kept_for == {"archive2": 3}
    assert list(Activation.objects.filter(cleared=True)) == [made["two"]]
    assert told(apply()) == {("protocols", "one", "well"): 3}


@pytest.mark.usefixtures("feed")
def test_a_keeper_that_begins_to_look_at_each_ends_it(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    house(pool, {"one": 10, "two": 10})
    rows: list[UUID] = []

    def keep() -> None:
        rows.extend(FailureProtocol.objects.values_list("pk", flat=True))
        HOLDS["all"] = Hold(lambda picked, now: {each.id for each in picked}, lambda now: None)

    after_the_first(monkeypatch, keep)
    try:
        apply()
    finally:
        del HOLDS["all"]
    assert set(FailureProtocol.objects.values_list("pk", flat=True)) == set(rows) and len(rows) >= 15


@pytest.mark.usefixtures("feed")
def test_a_late_record_of_what_just_went_is_found_again(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    well = house(pool, {"one": 4})["one"]

    def late() -> None:
        protocols(well, 1, 5)
        Activation.objects.filter(pk=well.pk).update(late_records=1, cleared=False)

    looked_at: list[UUID] = []
    one_by_one = setting_rule.of_activation

    def of_activation(pk: UUID) -> Any:
        looked_at.append(pk)
        return one_by_one(pk)

    monkeypatch.setattr(setting_rule, "of_activation", of_activation)
    after_the_first(monkeypatch, late)

    assert apply().deleted == 5
    assert looked_at == [well.pk]
    assert Activation.objects.get().cleared


@pytest.mark.usefixtures("feed", "nothing_is_looked_at")
def test_more_than_is_looked_at_together_goes_all_the_same(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "LOOKED_AT", 4)
    monkeypatch.setattr(sweep, "MOST_LOOKED_AT", 8)
    house(pool, {"one": 41, "two": 2, "three": 17})

    assert apply().deleted == 60


@pytest.mark.usefixtures("feed")
def test_what_stays_is_not_looked_at_for_ever(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "LOOKED_AT", 4)
    monkeypatch.setattr(sweep, "MOST_LOOKED_AT", 4)
    made = house(pool, {"one": 10, "two": 10})
    dead = protocols(made["one"], 20, 5, received_at=NOW, last_attempt=True)

    assert apply().deleted == 20
    assert set(FailureProtocol.objects.all()) == set(dead)


def test_a_place_where_another_row_lies_by_now_is_left_alone(pool: Pool) -> None:
    made = house(pool, {"one": 3, "two": 3})
    young = protocols(made["one"], 2, 5, received_at=NOW)
    places = row_locations.find([each.pk for each in made.values()], NOW + DAY, 100).places
    assert len(places) == 8

    assert row_locations.delete(places, [made["one"].pk], NOW - DAY) == {made["one"].pk: 3}
    assert set(FailureProtocol.objects.filter(setting_key="one")) == set(young)
    assert FailureProtocol.objects.filter(setting_key="two").count() == 3


@pytest.mark.usefixtures("feed")
def test_settings_of_which_nothing_goes_cost_no_questions(pool: Pool) -> None:
    def questions() -> int:
        with CaptureQueriesContext(connection) as captured:
            apply()
        return len(captured)

    def more(count: int) -> None:
        for _ in range(count):
            setting = make_setting(pool, f"setting{LaunchSetting.objects.count()}")
            activation(setting, 5, well=False)
            protocols(activation(setting, 3, well=False), 3, 3)
            activation(make_setting(pool, f"setting{LaunchSetting.objects.count()}"), 5, well=True)
            activation(make_setting(pool, f"setting{LaunchSetting.objects.count()}"), 100, going_on=True)

    more(1)
    questions()
    few = questions()
    more(6)
    questions()
    assert questions() == few < 120


class SweepAgainstTheRule(TestCase):
    """Of some settings, whatever their histories: the rows that the rule leaves, and each that went counted
    once."""

    @how(max_examples=25, deadline=None)
    @given(
        st.lists(st.lists(st.tuples(st.integers(2, 60), st.booleans()), max_size=3), min_size=1, max_size=4),
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 60), st.integers(0, 20)),
        max_size=25),
        st.integers(1, 4), st.integers(2, 9),
    )  # fmt: skip
    def test_the_rows_that_are_left(
        self,
        histories: list[list[tuple[int, bool]]],
        failures: list[tuple[int, int, int, int]],
        first_group: int,
        looked_at: int,
    ) -> None:
        record_heartbeat("feed", NOW)
        pool = Pool.objects.create(name="demo")
        made = []
        for number, history in enumerate(histories):
            setting = make_setting(pool, f"setting{number}", retention_days=10)
            ordered = sorted(history, key=lambda each: -each[0])
            made.append([activation(setting, days, well=well, lasted=0.5) for days, well in ordered])
        kept, going = set(), Counter[str]()
        for which, number, ago, delay in failures:
            if which >= len(made) or number >= len(made[which]):
                continue
            received = min(NOW - ago * DAY + delay * DAY, NOW)
            last = made[which][-1]
            row = protocols(made[which][number], 1, ago, received_at=received)[0]
            if last.well or received < last.started_at - 10 * DAY:
                going[last.setting.key] += 1
            else:
                kept.add(row.pk)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sweep, "FIRST_GROUP", first_group)
            patch.setattr(sweep, "LOOKED_AT", looked_at)
            run = apply()

        assert set(FailureProtocol.objects.values_list("pk", flat=True)) == kept
        assert {key: n for (_, key, _), n in told(run).items()} == going
        assert run.deleted == sum(going.values())
