"""Minutes that KMAs report: each is counted once in every scope, minute, hour and day, whatever comes again,
late or from a clock that is wrong, and whenever the runner dies."""

import dataclasses
import random
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum

from agents.models import LaunchSetting, Run, Server
from agents.servers.operations import RemoveServer
from agents.settings import removal
from console.jobs import crash
from console.operations.operation import perform
from contract.messages import RecordBatch, RecordReceipt
from contract.records import MinuteFigures
from failures.intake.batch import accept_batch
from failures.models import RecordConflict, RefusedRecord
from metrics import rollup, sampling
from metrics.models import Day, Hour, HourMinutes, MetricsMark, Minute, Scope, ScopeMinute
from metrics.queries import scope_of, series, totals
from metrics.rules import Figures, minute_of
from tests.web import reports
from tests.web.test_dlq_words_lost import manage

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WIDER, PAIRS = ("*", "s", "h"), "sh"


class Hall:
    """A setting on a server, and its spool."""

    def __init__(self, key: str = "orders", name: str = "srv-1") -> None:
        self.server = reports.server(name)
        self.setting = LaunchSetting.objects.filter(key=key).first() or reports.setting(key)
        self.run = reports.run(self.setting, self.server)
        self.spool = reports.Spool(name)

    def minute(self, at: datetime = NOON, **fields: Any) -> MinuteFigures:
        return reports.minute_figures(reports.run_of(self.run), at, **fields)

    def send(self, *minutes: MinuteFigures, now: datetime | None = None, skew: float = 0.0) -> RecordReceipt:
        now = now or max(each.until for each in minutes) + timedelta(seconds=2)
        batch = dataclasses.replace(self.spool.batch(*minutes), sent_at=now + timedelta(seconds=skew))
        return accept_batch(self.server, batch, now)

    @property
    def scopes(self) -> dict[str, str]:
        setting, server = self.setting.pk, self.server.pk
        return {
            "*": scope_of(), "s": scope_of(setting), "h": scope_of(server=server),
            "sh": scope_of(setting, server),
        }  # fmt: skip


def settle(now: datetime) -> None:
    rollup.fold_all(now)
    rollup.pack_all(now)


def handled(table: Any, scope: str) -> int:
    found: int | None = table.objects.filter(scope__key=scope).aggregate(sum=Sum("succeeded"))["sum"]
    return found or 0


def by_total(hall: Hall, start: datetime, end: datetime, now: datetime) -> dict[str, int]:
    found = totals(hall.scopes.values(), start, end, now)
    return {name: found[scope].succeeded for name, scope in hall.scopes.items()}


def everywhere(number: int) -> dict[str, int]:
    return dict.fromkeys(("*", "s", "h", "sh"), number)


# -- intake --------------------------------------------------------------------------------------------------


def test_a_minute_is_a_row_and_counts_among_the_records_of_its_run() -> None:
    hall = Hall()
    assert hall.send(hall.minute()).new == 1
    row = Minute.objects.select_related("scope").get()
    assert (row.scope.key, row.succeeded, row.capacity_seconds, row.verified) == (
        hall.scopes["sh"], 8, 240.0, True,
    )  # fmt: skip
    hall.run.refresh_from_db()
    assert hall.run.stored_records == 1


def test_what_is_sent_again_is_stored_once_and_other_words_are_a_conflict() -> None:
    hall = Hall()
    batch = hall.spool.batch(hall.minute(), hall.minute(NOON + MINUTE))
    now = NOON + 3 * MINUTE
    assert accept_batch(hall.server, batch, now).new == 2
    assert accept_batch(hall.server, batch, now).known == 2
    copied = RecordBatch(hall.server.name, uuid.uuid4(), batch.records)
    assert accept_batch(hall.server, copied, now).known == 2
    assert not RecordConflict.objects.exists()
    other = dataclasses.replace(batch.records[0], content={**batch.records[0].content, "failed": 3})
    changed = RecordBatch(hall.server.name, uuid.uuid4(), (other,))
    assert accept_batch(hall.server, changed, now).conflicts == (1,)
    settle(now + 2 * HOUR)
    assert by_total(hall, NOON, NOON + HOUR, now + 2 * HOUR) == everywhere(16)


@pytest.mark.parametrize(
    "fields",
    [
        {"busy_seconds": float("nan")},
        {"busy_seconds": float("inf")},
        {"busy_seconds": -0.1},
        {"spool_seconds": float("nan")},
        {"spool_seconds": 1e13},
        {"succeeded": -1},
        {"failed": 10**12},
        {"bytes": 2**63},
        {"concurrency": -1},
        {"concurrency": 10**7},
        {"children_bytes": -1},
        {"until": NOON - MINUTE},
        {"until": NOON + 367 * DAY},
        {"processing": "128:1"},
        {"processing": "1:-1"},
        {"critical": "fast"},
        {"critical": f"1:{10**12}"},
        {"critical": "1:1 " * 2000},
    ],
    ids=lambda fields: str(fields)[:40],
)
def test_what_cannot_be_is_refused_and_the_others_are_stored(fields: dict[str, Any]) -> None:
    hall = Hall()
    receipt = hall.send(hall.minute(), hall.minute(**fields), hall.minute(NOON + MINUTE), now=NOON + HOUR)
    assert (receipt.new, [refusal.number for refusal in receipt.refused]) == (2, [2])
    refused = RefusedRecord.objects.get()
    assert next(iter(fields)) in refused.reason and Minute.objects.count() == 2


def test_of_a_setting_that_is_unknown_it_counts_for_its_server() -> None:
    hall = Hall()
    run = dataclasses.replace(reports.run_of(hall.run), setting="gone", activation=uuid.uuid4())
    hall.send(reports.minute_figures(run, NOON))
    now = NOON + 2 * HOUR
    settle(now)
    assert by_total(hall, NOON, now, now) == {"*": 8, "s": 0, "h": 8, "sh": 0}
    assert not Minute.objects.exists()


@pytest.mark.parametrize("hours", [-48, -1, 1, 400 * 24])
def test_a_clock_that_is_wrong_moves_no_figure(hours: int) -> None:
    hall = Hall()
    skew = hours * 3600.0
    hall.send(hall.minute(NOON + timedelta(seconds=skew)), now=NOON + 2 * MINUTE, skew=skew)
    rollup.fold_all(NOON + 2 * MINUTE)
    found = series("*", NOON, NOON + MINUTE, NOON + 5 * MINUTE).points
    assert [(point.start, point.succeeded) for point in found] == [(NOON, 8)]


# -- fold and pack -------------------------------------------------------------------------------------------


def test_each_minute_is_once_in_every_scope_minute_hour_and_day() -> None:
    hall, other = Hall(), Hall("orders", "srv-2")
    hall.send(*(hall.minute(NOON + n * MINUTE) for n in range(3)))
    other.send(other.minute(NOON), now=NOON + 3 * MINUTE)
    for now in (NOON + 4 * MINUTE, NOON + 5 * MINUTE, NOON + 2 * HOUR, NOON + 2 * HOUR + MINUTE):
        settle(now)
        for table in (ScopeMinute, Hour, Day):
            assert [handled(table, hall.scopes[name]) for name in ("*", "s", "h")] == [32, 32, 24], now
        assert by_total(hall, NOON, now, now) == {"*": 32, "s": 32, "h": 24, "sh": 24}
    assert not Minute.objects.exists() and HourMinutes.objects.count() == 2
    assert [handled(table, hall.scopes["sh"]) for table in (ScopeMinute, Hour, Day)] == [0, 24, 24]
    minutes = series(hall.scopes["sh"], NOON, NOON + 4 * MINUTE, now).points
    assert [point.succeeded for point in minutes] == [8, 8, 8, 0]
    assert minutes[0].processing == {20: 8, 24: 2} and minutes[0].capacity_seconds == 240


def test_an_hour_is_packed_when_it_is_over_for_a_while() -> None:
    hall = Hall()
    hall.send(hall.minute(NOON + 59 * MINUTE))
    settle(NOON + HOUR + 9 * MINUTE)
    assert Minute.objects.count() == 1
    settle(NOON + HOUR + 11 * MINUTE)
    assert not Minute.objects.exists() and handled(Hour, hall.scopes["sh"]) == 8


@pytest.mark.parametrize("late", [HOUR, 47 * HOUR, 3 * DAY, 40 * DAY, 364 * DAY])
def test_what_comes_late_is_added_wherever_its_time_is_kept(late: timedelta) -> None:
    hall = Hall()
    hall.send(hall.minute(), now=NOON + 2 * MINUTE)
    settle(NOON + 2 * HOUR)
    now = NOON + 2 * HOUR + late
    rollup.forget_all(now)
    hall.send(hall.minute(NOON + MINUTE), hall.minute(NOON), now=now)
    assert by_total(hall, NOON - DAY, now, now)["sh"] == 24
    settle(now)
    rollup.forget_all(now)
    assert by_total(hall, NOON - DAY, now, now) == everywhere(24)
    if late < 46 * HOUR:
        for scope in hall.scopes.values():
            points = series(scope, NOON, NOON + 3 * MINUTE, NOON + 10 * MINUTE + late).points
            assert [point.succeeded for point in points] == [16, 8, 0]
    assert {handled(Day, scope) for scope in hall.scopes.values()} == {24}
    assert {handled(Hour, scope) for scope in hall.scopes.values()} == {24 if late < 30 * DAY else 0}
    assert {handled(ScopeMinute, hall.scopes[name]) for name in ("*", "s", "h")} == {
        24 if late < 46 * HOUR else 0
    }


def test_what_took_hours_is_shared_among_them() -> None:
    hall = Hall()
    hall.send(hall.minute(until=NOON + 3 * HOUR, succeeded=180), now=NOON + 3 * HOUR)
    now = NOON + 5 * HOUR
    settle(now)
    for name in ("*", "sh"):
        found = [point.succeeded for point in series(hall.scopes[name], NOON, NOON + 3 * HOUR, now).points]
        assert set(found) == {1} and len(found) == 180
    assert by_total(hall, NOON, now, now) == everywhere(180)


def test_of_memory_the_most_is_kept() -> None:
    hall = Hall()
    hall.send(hall.minute(children_bytes=5), hall.minute(NOON + MINUTE, children_bytes=7))
    settle(NOON + 3 * MINUTE)
    hall.send(hall.minute(NOON + 3 * MINUTE, children_bytes=6))
    settle(NOON + 5 * MINUTE)
    assert Hour.objects.get(scope__key="*").children_bytes == 7


def test_what_is_too_old_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup, "DELETED_AT_ONCE", 2)
    hall = Hall()
    hall.send(*(hall.minute(NOON + n * MINUTE) for n in range(3)))
    settle(NOON + 2 * HOUR)

    def left(now: datetime) -> list[bool]:
        rollup.forget_all(now)
        return [table._default_manager.exists() for table in (ScopeMinute, HourMinutes, Hour, Day)]

    assert left(NOON + 47 * HOUR) == [True, True, True, True]
    assert left(NOON + 50 * HOUR) == [False, False, True, True]
    assert left(NOON + 31 * DAY) == [False, False, False, True]
    assert left(NOON + 367 * DAY) == [False, False, False, False]


def test_another_runner_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    hall = Hall()
    hall.send(hall.minute())
    monkeypatch.setattr(MetricsMark.objects, "select_for_update", lambda **_: MetricsMark.objects.none())
    settle(NOON + 2 * HOUR)
    assert Minute.objects.filter(folded=False).count() == 1 and not Hour.objects.exists()


@pytest.mark.parametrize("seed", range(6))
def test_in_whatever_order_things_happen_the_sums_are_those_of_what_was_sent(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minutes come in any order, repeated, late by days, of one or of hours, folded, packed and forgotten
    in between."""
    of = random.Random(seed)
    if seed % 2:  # an hour in several steps
        monkeypatch.setattr(rollup, "rows_at_once", lambda: 2)
    halls = [Hall(), Hall("orders", "srv-2"), Hall("payments")]
    sent: Counter[str] = Counter()
    now, batches = NOON, list[tuple[Hall, RecordBatch]]()
    for _ in range(40):
        now += timedelta(minutes=of.choice([1, 7, 61, 500]))
        match of.choice(["send", "send", "again", "fold", "pack", "forget"]):
            case "send":
                hall = of.choice(halls)
                several = []
                for _ in range(of.randint(1, 4)):
                    begun = now - timedelta(minutes=of.choice([2, 50, 900, 4000]), seconds=of.randrange(60))
                    until = begun + timedelta(seconds=of.choice([60, 61, 600, 20_000]))
                    number = of.randrange(50)
                    several.append(
                        hall.minute(begun, until=until, succeeded=number, processing=f"7:{number}")
                    )
                    sent.update(dict.fromkeys(hall.scopes.values(), number))
                batches.append((hall, hall.spool.batch(*several)))
                accept_batch(hall.server, batches[-1][1], now)
            case "again" if batches:
                hall, batch = of.choice(batches)
                accept_batch(hall.server, batch, now)
            case "fold":
                rollup.fold_all(now)
            case "pack":
                rollup.pack_all(now)
            case "forget":
                rollup.forget_all(now)
    for _ in range(2):
        rollup.fold_all(now)
        scopes = {scope for hall in halls for scope in hall.scopes.values()}
        found = totals(scopes, NOON - 10 * DAY, now, now)
        assert {scope: each.succeeded for scope, each in found.items()} == {
            each: sent[each] for each in scopes
        }
        assert {scope: each.processing.get(7, 0) for scope, each in found.items()} == {
            each: sent[each] for each in scopes
        }
        now += 3 * HOUR
        rollup.pack_all(now)
    assert not Minute.objects.exists() and sent["*"] > 0


@pytest.mark.django_db(transaction=True)
def test_runners_and_intakes_at_once_lose_nothing_and_count_nothing_twice() -> None:
    halls = [Hall(), Hall("orders", "srv-2")]
    now = NOON + 3 * HOUR
    barrier, faults = Barrier(5), list[BaseException]()

    def work(act: Callable[[int], object]) -> None:
        barrier.wait()
        try:
            for turn in range(12):
                act(turn)
        except Exception as error:
            faults.append(error)
        finally:
            connection.close()

    def sends(hall: Hall) -> Callable[[int], object]:
        return lambda turn: hall.send(*(hall.minute(NOON + turn * 10 * MINUTE) for _ in range(3)), now=now)

    depths = sampling.Depths(1, 2, 3, 4, 5.0)
    acts: list[Callable[[int], object]] = [
        *map(sends, halls),
        lambda _: settle(now),
        lambda _: settle(now),
        lambda turn: sampling.store({None: depths}, minute_of(NOON) + turn),
    ]
    threads = [Thread(target=work, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    settle(now)
    for hall in halls:
        assert by_total(hall, NOON, now, now) == {"*": 576, "s": 576, "h": 288, "sh": 288}
    assert [point.waiting for point in series("*", NOON, NOON + 12 * MINUTE, now).points] == [1] * 12


# -- removal -------------------------------------------------------------------------------------------------


def test_figures_of_a_removed_server_go_and_those_of_its_settings_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rollup, "DELETED_AT_ONCE", 1)
    hall, other = Hall(), Hall("orders", "srv-2")
    for each in (hall, other):
        each.send(each.minute(), each.minute(NOON + MINUTE))
    now = NOON + 2 * HOUR
    rollup.fold_all(now)
    # One that is reported at this moment is in the rows of its setting and of all.
    hall.send(hall.minute(NOON + 2 * MINUTE), now=now)
    Server.objects.filter(pk=hall.server.pk).update(last_seen_at=None)
    Run.objects.filter(server=hall.server).update(closed_at=now)
    perform(RemoveServer, hall.server, None, now)
    settle(now)
    rollup.forget_all(now)
    assert by_total(hall, NOON, now, now) == {"*": 40, "s": 40, "h": 0, "sh": 0}
    assert by_total(other, NOON, now, now) == {"*": 40, "s": 40, "h": 16, "sh": 16}
    left = {hall.scopes["*"], hall.scopes["s"], other.scopes["h"], other.scopes["sh"]}
    assert set(Scope.objects.values_list("key", flat=True)) == left
    for table in (Hour, Day, ScopeMinute):
        assert set(table._default_manager.values_list("scope__key", flat=True)) <= left


def test_figures_of_a_removed_setting_go_and_those_of_its_server_stay() -> None:
    hall, other = Hall(), Hall("payments")
    for each in (hall, other):
        each.send(each.minute(), each.minute(NOON + MINUTE))
    now = NOON + 2 * HOUR
    settle(now)
    setting, scopes = hall.setting, hall.scopes
    assert removal.anything_left(setting)
    for _ in removal.let_go(setting):
        pass
    assert not removal.anything_left(setting)
    setting.delete()
    rollup.forget_all(now)
    found = totals(scopes.values(), NOON, now, now)
    assert {name: found[scope].succeeded for name, scope in scopes.items()} == {
        "*": 32, "s": 0, "h": 32, "sh": 0,
    }  # fmt: skip
    assert not Scope.objects.filter(key__in=[scopes["s"], scopes["sh"]]).exists()


# -- kills ---------------------------------------------------------------------------------------------------

ROUND = (
    "from datetime import datetime; from metrics import rollup; now = datetime.fromisoformat('{now}');"
    "rollup.fold_all(now); rollup.pack_all(now); rollup.forget_all(now)"
)
PLACES = (
    "metrics: added, not marked",
    "metrics: marked, not committed",
    "metrics: packed, not deleted",
    "metrics: deleted, not committed",
    "metrics: forgotten, not committed",
)


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_killed_anywhere_nothing_is_lost_or_counted_twice() -> None:
    hall = Hall()
    hall.send(*(hall.minute(NOON + n * MINUTE) for n in range(3)))
    expected = Figures(
        succeeded=32, failed=8, recovered=4, bytes=2800, busy_seconds=10.0, capacity_seconds=960.0,
        children_bytes=1000, processing={20: 32, 24: 8}, critical={30: 32},
    )  # fmt: skip
    now = NOON + 2 * HOUR
    # Late, into hours that a killed round may have packed.
    for place in PLACES:
        killed = manage(
            "shell", "-c", ROUND.format(now=now.isoformat()), MA_CRASH_AT=place, MA_TEST_CRASHES="1"
        )
        assert killed.returncode == crash.EXIT_CODE, killed.stdout + killed.stderr
        if place == "metrics: marked, not committed":
            assert Minute.objects.filter(folded=False).count() == 3 and not Hour.objects.exists()
            hall.send(hall.minute(NOON + 3 * MINUTE), now=now)
        found = totals(hall.scopes.values(), NOON, now, now)
        assert found[hall.scopes["sh"]].succeeded in (24, 32)
    assert manage("shell", "-c", ROUND.format(now=now.isoformat())).returncode == 0
    assert totals(hall.scopes.values(), NOON, now, now) == dict.fromkeys(hall.scopes.values(), expected)
    assert not Minute.objects.exists()
