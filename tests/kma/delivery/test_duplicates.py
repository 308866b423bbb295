"""The guard against repeats: what was handled well is not handled again, what was not is never taken for a
repeat."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker.port import Settle
from contract.message_key import check_key, found_at
from contract.messages import Mode
from kma.children.pool import SLOTS_PER_CHILD
from kma.delivery.duplicates import digest_of
from kma.host.recovery import recover_all
from kma.sdk.encoding import encoded_message
from kma.spool.file import SpoolFile
from kma.spool.ledger import Ledger
from kma.spool.records import Spool
from tests.broker.houses import RealHouse
from tests.kma.conftest import Make, StartWorker
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import Stage, eventually, message
from tests.kma.queues import of, publish, script

OK, SLOW = {"do": "ok"}, {"do": "sleep", "seconds": 0.3}


def calls(folder: Path) -> list[str]:
    path = folder / "truth"
    return [json.loads(line)["id"] for line in path.read_text().splitlines()] if path.exists() else []


def wish(folder: Path, key: str = "key", **more: Any) -> dict[str, Any]:
    return {"duplicate_key": key, "parameters": {"truth_file": str(folder / "truth")}, **more}


@pytest.mark.parametrize("mode", [Mode.TRANSACTED, Mode.AUTO, Mode.DUPS_OK])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_repeats_are_accepted_without_the_agent(
    stage: Make, tmp_path: Path, mode: Mode, concurrency: int
) -> None:
    messages = [message(SLOW, identity=f"ID:{number % 3}") for number in range(12)]
    one = stage(messages, concurrency=concurrency, mode=mode, **wish(tmp_path))
    eventually(lambda: one.run.report().repeats == 9, "nine repeats")
    one.run.stop(close=True)
    one.run.join(20)
    assert one.link.outcomes() == {Settle.ACCEPT: 12}
    assert sorted(calls(tmp_path)) == ["ID:0", "ID:1", "ID:2"]
    assert one.run.report().handled == 3


def test_what_failed_is_called_again(stage: Make, tmp_path: Path) -> None:
    bad = {"do": "raise", "first": 1}
    one = stage(
        [message(bad, identity="ID:1"), message(OK, identity="ID:1")], max_attempts=5, **wish(tmp_path)
    )
    eventually(lambda: one.run.report().repeats == 1, "one of both")
    assert calls(tmp_path) == ["ID:1"] * 2 and one.run.report().handled == 1


def test_what_it_sends_is_committed_before_it_is_remembered(stage: Make, tmp_path: Path) -> None:
    send = message({"do": "send", "destination": "x"}, identity="ID:1")
    one = stage([], **wish(tmp_path, max_attempts=9))
    one.link.held = []
    one.link.put(send, send)
    eventually(lambda: bool(one.link.held), "the transaction")
    one.link.held = None
    one.link.lose()
    eventually(lambda: len(one.link.sent) == 1, "what it sends")
    eventually(lambda: one.run.report().repeats == 1, "the other one")
    assert len(one.link.sent) == 1


def test_the_window_ends_and_other_runs_know(stage: Make, tmp_path: Path) -> None:
    one = stage([message(OK, identity="ID:1")], **wish(tmp_path, duplicate_window_seconds=1.0))
    one.settled(1)
    one.link.put(message(OK, identity="ID:1"))
    eventually(lambda: one.run.report().repeats == 1, "a repeat")
    assert one.spool.handled_keys.repeats(one.run.key) == 1, "it outlives the process"
    subprocess.run(["sleep", "1.1"], check=True)
    one.link.put(message(OK, identity="ID:1"))
    eventually(lambda: one.run.report().handled == 2, "it is handled again")


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("property:order", ("{}", {"order": 7}), ("[]", {"order": 7})),
        ("pointer:/order/id", ('{"order": {"id": "a"}}', {}), ('{"order": {"id": "a"}, "at": 2}', {})),
        ("pointer:/a~1b/1", ('{"a/b": [0, 5]}', {}), ('{"a/b": [1, 5]}', {})),
    ],
)
def test_keys_are_where_the_setting_says(key: str, one: Any, other: Any) -> None:
    check_key(key)
    first, second = (digest_of(key, encoded_message(*each)) for each in (one, other))
    assert first == second and len(first) == 32
    assert digest_of(key, encoded_message("no json", {})) == b"" == digest_of(key, encoded_message("{}", {}))
    assert digest_of(key, b"no message") == b""


def test_types_tell_keys_apart() -> None:
    texts = ['{"id": 1}', '{"id": "1"}', '{"id": true}']
    assert len({digest_of("pointer:/id", encoded_message(text, {})) for text in texts}) == 3
    assert (
        found_at("/id", {"id": {}}) is None and found_at("/0", [3]) == 3 and found_at("/01", [3, 4]) is None
    )


@pytest.mark.parametrize("text", ["Key", "property:", "pointer:", "pointer:a", "pointer:/a~2", "x"])
def test_other_words_name_no_key(text: str) -> None:
    with pytest.raises(ValueError, match="one of"):
        check_key(text)


PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from kma.spool.records import Spool
from tests.kma.fakes import FakeLink, Stage, message

where, what = sys.argv[2:4]
kind = Spool if what == "append" else FakeLink
real = getattr(kind, what)
def replacement(self, *args, **more):
    if where == "after":
        real(self, *args, **more)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(kind, what, replacement)
Stage(Path(sys.argv[1]), [message({"do": "ok"}, identity="ID:1")], duplicate_key="key").run.start()
time.sleep(20)
"""


@pytest.mark.kill
@pytest.mark.process
@pytest.mark.parametrize(
    ("where", "what", "again"), [("before", "append", 1), ("after", "append", 0), ("before", "settle", 0)]
)
def test_killed_in_between_it_is_handled_again_or_was_handled(
    tmp_path: Path, where: str, what: str, again: int
) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), where, what]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[3], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -9, done.stderr.decode()
    file = SpoolFile(tmp_path / "spool.sqlite3")
    recover_all(tmp_path, Spool(file, 10**6), Ledger(file))
    file.close()
    one = Stage(tmp_path, [message(OK, identity="ID:1")], **wish(tmp_path))
    one.run.start()
    one.settled(1)
    one.end()
    assert len(calls(tmp_path)) == again and one.link.outcomes() == {Settle.ACCEPT: 1}


def test_on_a_broker_a_producer_that_sends_all_twice_is_handled_once(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting = house.setting()
    both = [script(OK, f"ID:{number}") for number in range(200)]
    publish(house, setting, *both, *both)
    ma.want(of(setting, concurrency=2, **wish(tmp_path)))
    worker = start()
    eventually(lambda: len(calls(tmp_path)) >= 60, "some", 40)
    worker.kill()
    worker.start()
    eventually(lambda: house.figures(setting).messages == 0, "all gone", 40)
    seen = calls(tmp_path)
    assert set(seen) == {f"ID:{number}" for number in range(200)}
    # What the children were at or had finished when it was killed: each of these has a place in the journal.
    assert len(seen) <= 200 + 2 * SLOTS_PER_CHILD
