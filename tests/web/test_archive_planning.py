"""Which blocks the archive is told to write, and when retention may delete what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection

from failures.models import FailureProtocol, RecoveredMessage
from insights.archive import planning
from insights.archive import report as results
from insights.archive.planning import add, archived_before, new_blocks, plan, preview_blocks
from insights.archive.report import damage
from insights.archive.statements import KINDS, ArchivedKind, Cut, cut
from insights.models import ArchiveBlock, BlockState, Recomputation
from insights.runs import loader
from retention.protocols.holds import Candidate, not_archived, protocols_archived_before
from tests.web import retention_rows as rows
from tests.web.insight_rows import run_row

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def switched_on(settings: Any) -> None:
    settings.MA_ARCHIVE_URL = "/var/ma/archive"


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test's own transaction is not one that still commits something."""
    monkeypatch.setattr("insights.archive.planning._upper", lambda now: now - timedelta(minutes=10))
    yield


def receive(*instants: datetime, **values: Any) -> list[FailureProtocol]:
    made = rows.protocols(None, len(instants), 0, **values)
    for each, at in zip(made, instants, strict=True):
        FailureProtocol.objects.filter(pk=each.pk).update(received_at=at)
    return made


def recovered(at: datetime) -> RecoveredMessage:
    return RecoveredMessage.objects.create(
        id=uuid4(), setting_key="orders", activation_uuid=uuid4(), server_name="srv-1", message_key="ID:1",
        attempt=2,
        occurred_at=at, received_at=at,
    )  # fmt: skip


def protocols() -> ArchivedKind:
    return KINDS["protocols"]


def ranges(kind: str = "protocols") -> list[tuple[str, str, str]]:
    found = ArchiveBlock.objects.filter(kind=kind).order_by("number")
    return [(f"{each.first:%d %H:%M}", f"{each.last:%d %H:%M}", each.state) for each in found]


def written(number: int, count: int, kind: str = "protocols", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "block": number, "rows": count, "files": [{"bytes": 10}], "replaces": [], **more}


def verified(number: int, kind: str = "protocols", **more: Any) -> dict[str, Any]:
    found = {
        "kind": kind,
        "number": number,
        "ok": True,
        "missing": 0,
        "extra": 0,
        "problems": [],
        "examples": [],
    }
    return found | more


def picked(at: datetime) -> Candidate:
    return Candidate(uuid4(), None, at, "orders", "", False, False, False, at, "")


def test_with_the_archive_off_nothing_is_planned_and_nothing_kept(settings: Any) -> None:
    settings.MA_ARCHIVE_URL = ""
    receive(NOON)

    assert plan(NOON + HOUR)["blocks"] == []
    assert not ArchiveBlock.objects.exists()
    assert not_archived([picked(NOON)], NOON) == ()
    assert archived_before("protocols", NOON) is None


def test_a_range_is_cut_at_midnight_and_at_its_rows() -> None:
    receive(*(NOON + timedelta(minutes=minute) for minute in range(20)), NOON + 13 * HOUR)
    cuts = list(cut(protocols(), NOON - 12 * HOUR, NOON + 14 * HOUR, rows=8))

    assert [(f"{each.first:%d %H:%M}", f"{each.last:%d %H:%M}") for each in cuts] == [
        ("22 00:00", "22 12:08"), ("22 12:08", "22 12:16"), ("22 12:16", "23 00:00"), ("23 00:00",
        "23 02:00"),
    ]  # fmt: skip
    assert [len(each.splits) for each in cuts] == [3, 3, 1, 0]
    assert sum(protocols().count(each.first, each.last) for each in cuts) == 21


def test_rows_of_one_instant_stay_together() -> None:
    receive(*[NOON] * 30, NOON + HOUR)
    cuts = list(cut(protocols(), NOON, NOON + 2 * HOUR, rows=8))

    assert [protocols().count(each.first, each.last) for each in cuts] == [31]
    assert list(cuts[0].splits) == [NOON + HOUR]


def test_what_is_empty_is_one_block_and_the_day_that_goes_on_is_looked_at_again() -> None:
    day = timedelta(days=1)
    receive(NOON - 400 * day, NOON)
    cuts = list(cut(protocols(), NOON - 400 * day, NOON + HOUR))
    after = list(cut(protocols(), NOON + HOUR, NOON + 2 * HOUR))

    assert [(each.empty, protocols().count(each.first, each.last)) for each in cuts] == [
        (False, 1), (True, 0), (False, 1),
    ]  # fmt: skip
    assert [first.last for first in cuts[:-1]] == [second.first for second in cuts[1:]]
    assert after == []


@pytest.mark.usefixtures("calm")
def test_blocks_follow_each_other_and_are_planned_once() -> None:
    receive(NOON)
    first = plan(NOON + HOUR)
    again = plan(NOON + HOUR)
    receive(NOON + 2 * HOUR)
    later = plan(NOON + 3 * HOUR)

    assert [each["number"] for each in first["blocks"]] == [each["number"] for each in again["blocks"]] == [1]
    assert ranges() == [("22 00:00", "22 12:50", "planned"), ("22 12:50", "22 14:50", "planned")]
    assert [each["first"] for each in later["blocks"]] == [
        "2026-11-22T00:00:00.000000+00:00", "2026-11-22T12:50:00.000000+00:00",
    ]  # fmt: skip
    assert new_blocks()["protocols"] == [1, 2]
    assert preview_blocks(NOON + 3 * HOUR)["protocols"] == 0


@pytest.mark.usefixtures("calm")
def test_what_a_clock_that_was_set_back_received_is_planned_too() -> None:
    receive(NOON)
    plan(NOON + HOUR)
    receive(NOON - timedelta(days=3))
    assert protocols_archived_before(NOON + HOUR) is not None
    plan(NOON + HOUR)

    assert ("19 00:00", "20 00:00", "planned") in ranges()


@pytest.mark.usefixtures("calm")
def test_every_kind_has_a_statement_that_the_database_takes(world: Any) -> None:
    planned = plan(world.now + HOUR)
    counted = {
        name: kind.count(world.now - timedelta(days=900), world.now + HOUR) for name, kind in KINDS.items()
    }

    assert set(planned["source"]["statements"]) == {
        "protocols", "recovered", "activations", "runs", "trips", "letters", "replays",
    }  # fmt: skip
    assert counted["protocols"] == FailureProtocol.objects.count() > 0
    assert counted["letters"] > 0
    assert planned["source"]["masks"].keys() == {setting.key for setting in world.settings.values()}
    assert (connection.settings_dict["PASSWORD"] or "no password at all") not in str(planned)


@pytest.mark.usefixtures("calm")
def test_retention_deletes_only_what_is_in_a_settled_block() -> None:
    receive(NOON)
    old, new = picked(NOON), picked(NOON + 5 * HOUR)
    assert set(not_archived([old, new], NOON)) == {old.id, new.id}

    plan(NOON + HOUR)
    results.take_report({"written": [written(1, 1)]}, NOON + HOUR)
    assert set(not_archived([old], NOON + HOUR)) == {old.id}
    results.take_report({"verified": [verified(1)]}, NOON + HOUR)
    assert set(not_archived([old], NOON + HOUR)) == {
        old.id
    }  # it may still be joined by one that is committed late
    planning.settle_all(NOON + 2 * HOUR)

    assert set(not_archived([old, new], NOON + 2 * HOUR)) == {new.id}
    assert archived_before("protocols", NOON + 2 * HOUR) == NOON + timedelta(minutes=50)


@pytest.mark.usefixtures("calm")
def test_what_was_committed_late_is_planned_as_a_block_of_its_own() -> None:
    receive(NOON)
    plan(NOON + HOUR)
    results.take_report({"written": [written(1, 1)], "verified": [verified(1)]}, NOON + HOUR)
    receive(NOON + timedelta(minutes=1))
    planning.settle_all(NOON + 2 * HOUR)
    planning.settle_all(NOON + 2 * HOUR)

    late = ArchiveBlock.objects.get(late_of=1)
    assert (late.number, late.state, late.first) == (2, "planned", NOON - 12 * HOUR)
    assert set(not_archived([each := picked(NOON)], NOON)) == {each.id}
    results.take_report({"written": [written(2, 1)], "verified": [verified(2)]}, NOON + 2 * HOUR)
    planning.settle_all(NOON + 2 * HOUR)
    assert ArchiveBlock.objects.get(number=1).settled_at == NOON + 2 * HOUR
    assert not_archived([picked(NOON)], NOON + 2 * HOUR) == set()


@pytest.mark.usefixtures("calm")
def test_what_comes_late_into_days_that_were_empty_is_planned_by_its_day() -> None:
    midnight = NOON - 12 * HOUR
    receive(NOON - timedelta(days=5))
    plan(midnight + HOUR / 3)
    assert ranges() == [("17 00:00", "18 00:00", "planned"), ("18 00:00", "22 00:00", "verified")]
    receive(midnight - HOUR / 60)
    planning.settle_all(midnight + 2 * HOUR)

    assert [f"{each.day}" for each in ArchiveBlock.objects.filter(late_of=2)] == ["2026-11-21"]


def test_a_damaged_block_is_read_anew_while_the_database_has_its_rows() -> None:
    receive(NOON)
    for number in (1, 2):
        first = NOON + (number - 1) * HOUR
        block = add("protocols", Cut(first, first + HOUR), NOON)
        results.take_report({"written": [written(number, 1)], "verified": [verified(number)]}, NOON)
        ArchiveBlock.objects.filter(pk=block.pk).update(settled_at=NOON)
    broken = [
        {"kind": "protocols", "block": number, "path": f"part-{number}", "why": "cut off"}
        for number in (1, 2)
    ]
    results.take_report({"quarantined": broken}, NOON + 3 * HOUR)
    planning.settle_all(NOON + 3 * HOUR)

    # Of the second one the database has nothing any more.
    assert ranges() == [
        ("22 12:00", "22 13:00", "damaged"), ("22 13:00", "22 14:00", "damaged"), ("22 12:00", "22 13:00",
        "planned"),
    ]  # fmt: skip
    assert ArchiveBlock.objects.get(number=1).problem == "part-1: cut off"
    assert len(not_archived([picked(NOON)], NOON)) == 1
    results.take_report(
        {"written": [written(3, 1, replaces=[1])], "verified": [verified(3)]}, NOON + 4 * HOUR
    )
    assert ArchiveBlock.objects.get(number=1).state == BlockState.REPLACED
    assert not_archived([picked(NOON)], NOON + 4 * HOUR) == set()
    assert len(not_archived([picked(NOON + HOUR)], NOON + 4 * HOUR)) == 1


def test_a_damaged_block_whose_files_came_back_is_whole_again_when_it_was_looked_at() -> None:
    block = add("protocols", Cut(NOON, NOON + HOUR), NOON)
    results.take_report({"written": [written(1, 1)], "verified": [verified(1)]}, NOON)
    broken = [{"kind": "protocols", "block": 1, "path": "part-1", "why": "file not found"}]
    results.take_report({"quarantined": broken}, NOON + HOUR)
    found = damage()
    assert found is not None and (found.blocks, found.problem) == (1, "part-1: file not found")
    ArchiveBlock.objects.update(check_asked=True)
    results.take_report(
        {"verified": [verified(1) | {"problems": ["part-1: file not found"]}]}, NOON + 2 * HOUR
    )
    assert damage() is not None

    ArchiveBlock.objects.update(check_asked=True)
    results.take_report({"verified": [verified(1)]}, NOON + 3 * HOUR)
    block.refresh_from_db()
    assert (block.state, block.problem, block.verified_at) == ("verified", "", NOON + 3 * HOUR)
    assert damage() is None


@pytest.mark.usefixtures("calm")
def test_what_was_damaged_and_can_be_read_again_has_everything_computed_anew() -> None:
    receive(NOON)
    first = plan(NOON + HOUR)
    run = run_row("done", hours=0)
    done = {"written": [written(1, 1)], "verified": [verified(1)]}
    loader.take_archive_report(
        done, {**first, "new_blocks": {"protocols": [1]}}, run, NOON + HOUR, computed=True
    )
    assert plan(NOON + HOUR)["new_blocks"]["protocols"] == [] and not plan(NOON + HOUR)["anew"]

    broken = [{"kind": "protocols", "block": 1, "path": "part-1", "why": "file not found"}]
    FailureProtocol.objects.all().delete()  # nothing to read it anew from
    results.take_report({"quarantined": broken}, NOON + HOUR)
    assert not plan(NOON + HOUR)["anew"]
    call_command("archive", "verify", stdout=StringIO())
    asked = plan(NOON + HOUR)
    assert (asked["anew"], asked["new_blocks"]["protocols"]) == (True, [1])
    # One that comes while the run computes outlives it; one that failed to compute all clears nothing.
    planning.request_recomputation("meanwhile")
    loader.take_archive_report({"verified": [verified(1)]}, asked, run, NOON + 2 * HOUR, computed=False)
    assert len(planning.asked()) == 2
    loader.take_archive_report({"verified": [verified(1)]}, asked, run, NOON + 2 * HOUR, computed=True)
    assert list(Recomputation.objects.values_list("why", flat=True)) == ["meanwhile"]


def test_damage_that_a_run_found_gone_by_itself_is_computed_by_the_next_one() -> None:
    run = run_row("done", hours=0)
    add("protocols", Cut(NOON, NOON + HOUR), NOON)
    results.take_report({"written": [written(1, 1)], "verified": [verified(1)]}, NOON)
    ArchiveBlock.objects.update(state=BlockState.DAMAGED, check_asked=True, computed=True)
    planned: dict[str, Any] = {"new_blocks": {}, "anew_requests": []}
    loader.take_archive_report({"verified": [verified(1)]}, planned, run, NOON + HOUR, computed=True)

    assert len(planning.asked()) == 1 and new_blocks(anew=True)["protocols"] == [1]


def test_a_day_of_many_small_blocks_becomes_one() -> None:
    for number in range(9):
        first = NOON + timedelta(minutes=number)
        block = add("protocols", Cut(first, first + timedelta(minutes=1)), NOON)
        results.take_report({"written": [written(number + 1, 5)], "verified": [verified(number + 1)]}, NOON)
        ArchiveBlock.objects.filter(pk=block.pk).update(settled_at=NOON, computed=number > 0)
    later = NOON + timedelta(days=4)
    planning.plan_kind("protocols", later)
    assert not ArchiveBlock.objects.filter(compacts=True).exists()  # a job has still to see the first one
    ArchiveBlock.objects.update(computed=True)
    planning.plan_kind("protocols", later)
    planning.plan_kind("protocols", later)

    planned = ArchiveBlock.objects.get(compacts=True)
    assert (planned.replaces, planned.first, planned.last) == (
        list(range(1, 10)),
        NOON,
        NOON + timedelta(minutes=9),
    )
    results.take_report({"written": [written(10, 45, replaces=planned.replaces)]}, later)
    assert {state for _, _, state in ranges()} == {"replaced", "verified"}
    assert not_archived([picked(NOON)], later) == set()


@pytest.mark.usefixtures("calm")
def test_recovered_messages_wait_for_their_block_too() -> None:
    recovered(NOON)
    plan(NOON + HOUR)
    assert archived_before("recovered", NOON + HOUR) == NOON - 12 * HOUR
    results.take_report(
        {"written": [written(1, 1, "recovered")], "verified": [verified(1, "recovered")]}, NOON + HOUR
    )
    planning.settle_all(NOON + 2 * HOUR)

    assert archived_before("recovered", NOON + 2 * HOUR) == NOON + timedelta(minutes=50)


def test_a_row_too_many_in_a_new_block_keeps_it_from_being_verified() -> None:
    add("protocols", Cut(NOON, NOON + HOUR), NOON)
    wrong = verified(1, ok=False, extra=1, examples=["p-1"])
    results.take_report({"written": [written(1, 3)], "verified": [wrong]}, NOON)

    block = ArchiveBlock.objects.get()
    assert (block.state, "p-1" in block.problem) == ("written", True)


def test_a_report_that_comes_twice_changes_nothing() -> None:
    add("protocols", Cut(NOON, NOON + HOUR), NOON)
    report = {"written": [written(1, 3)], "verified": [verified(1)]}
    results.take_report(report, NOON)
    results.take_report(report, NOON + HOUR)

    block = ArchiveBlock.objects.get()
    assert (block.state, block.written_at, block.verified_at) == ("verified", NOON, NOON)


def test_a_person_has_blocks_looked_at_once_more(capsys: pytest.CaptureFixture[str]) -> None:
    add("protocols", Cut(NOON, NOON + HOUR), NOON)
    results.take_report({"written": [written(1, 3)], "verified": [verified(1)]}, NOON)
    call_command("archive", "verify", "--day", "2026-11-22")
    assert [each["number"] for each in plan(NOON + HOUR)["verify"]] == [1]
    lost = verified(1, ok=False, missing=2, examples=["p-7"])
    results.take_report({"verified": [lost]}, NOON + HOUR)
    assert plan(NOON + HOUR)["verify"] == []

    with pytest.raises(SystemExit):
        call_command("archive", "status")
    assert "2026-11-22  protocols: 3 rows, 10 bytes, 1 blocks" in capsys.readouterr().out
    results.take_report({"verified": [verified(1)]}, NOON + HOUR)
    call_command("archive", "status", "--json")
    assert '"problems": []' in capsys.readouterr().out
