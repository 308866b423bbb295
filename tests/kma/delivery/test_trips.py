"""The breaker trips: what is begun, finished, given back, and said of it (the specification, section 3)."""

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker.port import Settle
from contract.breaker import Counts
from contract.messages import DesiredRun
from contract.records import BreakerCounts, RunState
from kma.delivery.breaker import after_kill, first_carried
from kma.delivery.credit import Credit
from kma.run.message_run import MessageRun
from kma.spool.journal import Totals
from kma.spool.ledger import CarriedCounts
from tests.kma.conftest import Make
from tests.kma.fakes import Stage, eventually, message, wanted

OK, BAD = {"do": "ok"}, {"do": "raise"}


def begun(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ids(stage: Stage, kind: str) -> list[str]:
    return [str(record.id) for record in stage.spool.head(10_000, 1 << 30) if record.kind == kind]


def over(stage: Stage) -> dict[str, Any]:
    """Waits for the run's own end; its interruption."""
    stage.run.join(30)
    assert not stage.run.alive, "it ends by itself"
    (interruption,) = stage.records("interruption")
    return interruption


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_permanent_failure_spends_no_more_than_n_and_the_handlers(
    stage: Make, tmp_path: Path, concurrency: int
) -> None:
    file = tmp_path / "truth"
    bad = [message(BAD, identity=f"ID:{n}") for n in range(60)]
    one = stage(
        bad, max_failures=10, concurrency=concurrency, max_attempts=9, parameters={"truth_file": str(file)}
    )
    interruption = over(one)
    failed = len(begun(file))
    assert 3 <= failed <= 3 + concurrency
    assert one.link.outcomes() == {Settle.FAIL: failed}, (
        "those at hand finished and were settled, nothing else was"
    )
    assert one.link.stopped and one.link.dead == []
    assert (interruption["reason"], interruption["max_failures"]) == ("same_type", 10)
    assert interruption["counts"] == {"same_type": "RuntimeError", "same": 3, "any": 3, "marks": []}
    assert interruption["evidence"] == ids(one, "protocol")[:3]
    (closing,) = one.records("closing")
    assert closing["state"] == "interrupted"
    assert (closing["failed"], one.spooled(closing)) == (failed, failed + 1)
    assert closing["counts"] == {"same_type": "RuntimeError", "same": failed, "any": failed, "marks": []}
    assert one.kinds()[-1] == "closing" and one.kinds()[3] == "interruption"
    assert one.run.state is RunState.INTERRUPTED and one.run.report().counts.any == failed
    assert not list(one.folder.glob("*.journal"))


def test_what_a_child_holds_behind_the_failure_is_not_begun(stage: Make, tmp_path: Path) -> None:
    """Quick successes first, so that the child has frames in advance when it begins to fail."""
    file = tmp_path / "truth"
    scripts = [*([OK] * 300), *([BAD] * 60)]
    one = stage([message(step) for step in scripts], max_failures=6, parameters={"truth_file": str(file)})
    over(one)
    assert len(begun(file)) <= 302 + 1
    assert one.run.report().handled == 300


def test_failures_of_mixed_types_trip_after_m(stage: Make) -> None:
    mixed = [message({"do": "raise", "type": name}) for name in ("KeyError", "OSError") * 10]
    one = stage(mixed, max_failures=7, max_attempts=1)
    interruption = over(one)
    assert (interruption["reason"], interruption["counts"]["any"]) == ("any_type", 7)
    assert len(interruption["evidence"]) == 7


def test_a_success_in_between_and_what_is_temporary_trip_nothing(stage: Make) -> None:
    steps = [BAD, BAD, OK, BAD, {"do": "temporary"}, {"do": "temporary"}, {"do": "temporary"}, OK, BAD, BAD]
    one = stage([message(step) for step in steps], max_failures=9, max_attempts=1)
    one.settled(10)
    assert one.records("interruption") == [] and one.run.alive
    assert one.run.report().counts == BreakerCounts("RuntimeError", 2, 2)


@pytest.mark.parametrize(
    ("step", "fields", "kind"),
    [
        ({"do": "exit", "code": 3}, {}, "exit:3"),
        ({"do": "kill", "signal": "SIGKILL"}, {}, "signal:SIGKILL"),
        ({"do": "sleep", "seconds": 30}, {"handling_timeout_seconds": 0.3}, "timeout"),
        ({"do": "invalid"}, {}, "kma.agent.InvalidMessage"),
    ],
)
def test_deaths_timeouts_and_invalid_messages_trip_as_their_type(
    stage: Make, step: Any, fields: dict[str, Any], kind: str
) -> None:
    one = stage([message(step) for _ in range(10)], max_failures=6, **fields)
    interruption = over(one)
    assert (interruption["counts"]["same_type"], interruption["counts"]["same"]) == (kind, 2)
    assert len(ids(one, "protocol")) == 2


def test_handlers_at_hand_finish_and_count_within_the_grace_period(stage: Make, tmp_path: Path) -> None:
    file = tmp_path / "truth"
    # Long enough for two failures of the third child, however late that starts.
    slow = [{"do": "sleep", "seconds": 4}, {"do": "ok"}]
    slow_bad = [{"do": "sleep", "seconds": 4}, {"do": "raise", "type": "OSError"}]
    bad = [{"do": "sleep", "seconds": 0.3}, BAD]
    scripts = [slow, slow_bad, bad, bad, bad, bad]
    one = stage(
        [message(step) for step in scripts],
        max_failures=6,
        concurrency=3,
        max_attempts=1,
        parameters={"truth_file": str(file)},
    )
    interruption = over(one)
    assert interruption["counts"]["same"] == 2
    report = one.run.report()
    assert (report.handled, report.failed) == (1, 3) and len(begun(file)) == 4
    assert one.link.outcomes() == {Settle.ACCEPT: 1, Settle.FAIL: 3}
    assert len(one.records("interruption")) == 1
    assert one.records("closing")[0]["handled"] == 1


def test_after_the_grace_period_the_rest_is_given_back_without_an_attempt(stage: Make) -> None:
    bad = [{"do": "sleep", "seconds": 0.3}, BAD]
    long = message({"do": "sleep", "seconds": 60})
    one = stage([long, message(bad)], max_failures=1, concurrency=2, max_attempts=1, grace_seconds=0.3)
    over(one)
    assert one.link.outcomes() == {Settle.FAIL: 1} and list(one.link.outstanding.values()) == [long]
    assert one.records("closing")[0]["failed"] == 1


def test_who_reports_is_woken_when_the_interruption_is_on_disk(stage: Make) -> None:
    one = stage([])
    assert one.link is one.links[0]
    one.run.stop(close=False)
    one.run.join(20)
    seen: list[list[str]] = []
    around = replace(one.around, report_now=lambda: seen.append(one.kinds()))
    one.run = MessageRun(replace(one.desired, max_failures=1), "1", around)
    one.run.start()
    eventually(lambda: len(one.links) == 2, "its link")
    one.link.put(message(BAD))
    over(one)
    assert seen[0] == ["protocol", "interruption"] and seen[-1][-1] == "closing"


def test_the_limit_follows_the_setting_while_the_run_is_alive(stage: Make) -> None:
    one = stage([message(BAD), message(BAD)], max_failures=1000, max_attempts=1)
    one.settled(2)
    one.run.change(replace(one.desired, max_failures=9))
    time.sleep(0.2)
    assert one.run.alive, "it is judged when the next failure counts"
    one.link.put(message(BAD))
    assert over(one)["max_failures"] == 9


def test_each_message_counts_once_where_the_setting_says_so(stage: Make) -> None:
    one = stage([message(BAD, identity="ID:1")], max_failures=6, count_message_once=True, max_attempts=8)
    one.settled(8)
    counts = one.run.report().counts
    assert (counts.any, len(counts.marks)) == (1, 1) and one.records("interruption") == []
    assert [record["counted"] for record in one.records("protocol")] == [True] * 8, "by the table, as always"
    one.link.put(message(BAD, identity="ID:2"))
    assert len(over(one)["evidence"]) == 2


def test_equal_messages_without_an_id_are_not_taken_for_one(stage: Make) -> None:
    plain = json.dumps(BAD).encode()
    body = b"\x00\x53\x77\xa1" + bytes([len(plain)]) + plain
    one = stage([body, body], max_failures=6, count_message_once=True, max_attempts=1)
    interruption = over(one)
    assert {record["message"]["weak"] for record in one.records("protocol")} == {True}
    assert interruption["counts"]["same"] == 2


# -- try one first -------------------------------------------------------------------------------------------


def test_on_trial_one_message_is_tried_and_its_failure_trips(stage: Make, tmp_path: Path) -> None:
    file = tmp_path / "truth"
    scripts = [{"do": "temporary"}, [{"do": "sleep", "seconds": 0.3}, BAD], *([OK] * 10)]
    one = stage(
        [message(step) for step in scripts],
        trial_first=True,
        max_failures=1000,
        concurrency=4,
        max_attempts=1,
        parameters={"truth_file": str(file)},
    )
    assert over(one)["reason"] == "trial"
    assert len(begun(file)) == 2, "the one that was temporarily impossible says nothing of the agent"
    assert one.link.settled[0][1] is Settle.FAIL and len(one.link.outstanding) <= 1, (
        "one at a time was asked for"
    )


def test_after_the_first_success_of_a_trial_it_goes_at_full_speed(stage: Make, tmp_path: Path) -> None:
    file = tmp_path / "truth"
    nap = [{"do": "sleep", "seconds": 0.4}]
    one = stage(
        [message(nap) for _ in range(9)],
        trial_first=True,
        max_failures=6,
        concurrency=4,
        parameters={"truth_file": str(file)},
    )
    one.settled(9)
    at = [line["at"] for line in begun(file)]
    assert min(at[1:]) - at[0] >= 0.4, "nobody began while the first one was tried"
    assert Counter(round((instant - at[1]) / 0.4) for instant in at[1:])[0] == 4, "then four at a time"
    one.link.put(message({**BAD, "first": 1}))
    one.settled(11)
    assert one.run.alive, "one failure is no trip any more"


# -- no more than so many messages ---------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_run_takes_exactly_as_many_messages_as_it_shall(
    stage: Make, tmp_path: Path, concurrency: int
) -> None:
    file = tmp_path / "truth"
    scripts = [{**BAD, "first": 1} if n % 10 == 0 else OK for n in range(200)]
    one = stage(
        [message(step) for step in scripts],
        concurrency=concurrency,
        limit_messages=77,
        parameters={"truth_file": str(file)},
    )
    one.run.join(30)
    assert not one.run.alive and len(begun(file)) == 77
    (closing,) = one.records("closing")
    assert closing["state"] == "finished"
    assert closing["handled"] + closing["failed"] == 77
    assert len(one.link.settled) == 77 and one.link.stopped


def test_what_was_handled_before_a_restart_is_part_of_the_limit(stage: Make, tmp_path: Path) -> None:
    file = tmp_path / "truth"
    one = stage([message(OK) for _ in range(5)], limit_messages=8, parameters={"truth_file": str(file)})
    one.settled(5)
    one.run.stop(close=False)
    one.run.join(20)
    for more in (10, 0):
        one.run = MessageRun(one.desired, "1", one.around)
        one.run.start()
        if more:
            eventually(lambda: len(one.links) == 2, "its link")
            one.link.put(*(message(OK) for _ in range(more)))
        one.run.join(20)
        assert not one.run.alive and len(begun(file)) == 8
    assert [record["state"] for record in one.records("closing")] == ["finished"]


def test_credit_and_begun_handlings_stay_within_limit_and_trial() -> None:
    allowance = Credit(wanted(concurrency=4, limit_messages=6), ended=3)
    assert allowance.credit(on_trial=False) == 3 and allowance.credit(on_trial=True) == 1
    assert [allowance.begin(holding, 0, on_trial=False) for holding in (0, 2, 3, 4)] == [3, 1, 0, 0]
    assert [allowance.begin(*at_hand, on_trial=True) for at_hand in ((0, 0), (1, 0), (0, 1))] == [1, 0, 0]
    allowance.ended = 6
    assert allowance.reached and allowance.credit(on_trial=False) == 0
    assert Credit(wanted(), 10**9).begin(5, 5, on_trial=False) is None


# -- what one run leaves to the next -------------------------------------------------------------------------

ACTIVATION = UUID(int=5)
HELD = CarriedCounts(
    4, 9, str(ACTIVATION), 2, Counts("OSError", 2, 3), (UUID(int=1), UUID(int=2), UUID(int=3))
)


def asked(activation: UUID = ACTIVATION, epoch: int = 2, told: BreakerCounts | None = None) -> DesiredRun:
    return wanted(activation=activation, epoch=epoch, carried_counts=told)


def test_the_same_run_goes_on_with_what_it_had() -> None:
    assert first_carried(HELD, asked(told=BreakerCounts("X", 1, 1))) == HELD


def test_another_epoch_of_the_activation_goes_on_unless_the_one_before_tripped() -> None:
    assert first_carried(HELD, asked(epoch=3)) == replace(HELD, epoch=3)
    resumed = first_carried(replace(HELD, interrupted=True), asked(epoch=3, told=BreakerCounts("X", 1, 1)))
    assert (resumed.counts, resumed.evidence, resumed.interrupted) == (Counts(), (), False)
    assert (resumed.successes, resumed.failures) == (4, 9), "those are the setting's"


def test_another_activation_begins_with_what_the_ma_tells_or_with_nothing() -> None:
    enabled = first_carried(HELD, asked(UUID(int=6), 1))
    assert (enabled.counts, enabled.evidence) == (Counts(), ())
    told = first_carried(HELD, asked(UUID(int=6), 1, BreakerCounts("KeyError", 1, 7, ("ab",))))
    assert (told.counts, told.evidence) == (Counts("KeyError", 1, 7, ("ab",)), ())
    same = first_carried(HELD, asked(UUID(int=6), 1, BreakerCounts("OSError", 2, 3)))
    assert (same.counts, same.evidence) == (HELD.counts, HELD.evidence), (
        "this server ran last: it knows on what"
    )


def test_after_a_kill_a_success_since_the_last_failure_has_set_the_counts_to_zero() -> None:
    assert after_kill(HELD, Totals(successes=4, since=9)) == HELD
    reset = after_kill(HELD, Totals(successes=5, since=9))
    assert (reset.counts, reset.evidence, reset.successes, reset.failures) == (Counts(), (), 5, 9)
    assert after_kill(HELD, Totals(successes=50, since=8)) == HELD, "the journal speaks of an older failure"
