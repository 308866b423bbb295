"""The container on one server: desired state, heartbeats, restarts. The MA speaks HTTP, the link is a
fake."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker.port import Account, ConsumerEvents, Settle
from contract.messages import DesiredRun, Heartbeat, HeartbeatReply
from kma.host.config import Config
from kma.host.host import FolderTaken, Host
from kma.ma_client import MaClient
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import SAMPLES, FakeLink, eventually, message, said, wanted

pytestmark = pytest.mark.process


class Server:
    """Hosts on one data folder, one after the other, and the links that they opened."""

    def __init__(self, folder: Path, ma: FakeMa) -> None:
        self.ma = ma
        self.links: dict[str, FakeLink] = {}
        self.messages: dict[str, list[bytes]] = {}
        self.config = Config(
            ma_url=ma.url,
            server="srv-1",
            token=ma.token,
            agents=SAMPLES,
            data=folder / "srv-1",
            account=Account("amqp://127.0.0.1:1", "kma", "secret"),
            redis_url="redis://127.0.0.1:1",
            heartbeat_seconds=0.1,
            spool_bytes=10**7,
            keep_seconds=3600,
            log_level="INFO",
        )
        self.host: Host | None = None

    def connect(self, run: DesiredRun, events: ConsumerEvents) -> FakeLink:
        link = FakeLink(events, self.messages.pop(run.setting, []), max_attempts=run.max_attempts)
        self.links[run.setting] = link
        return link

    def start(self) -> None:
        self.host = Host(self.config, self.connect)
        self.host.start()

    def stop(self) -> None:
        if self.host is not None:
            self.host.stop()
            self.host = None

    def report(self, setting: str = "orders") -> dict[str, Any]:
        return next((run for run in self.ma.last["runs"] if run["setting"] == setting), {})

    def until(self, state: str, setting: str = "orders") -> None:
        eventually(lambda: self.report(setting).get("state") == state, f"{setting} {state}")


@pytest.fixture
def server(tmp_path: Path, ma: FakeMa) -> Iterator[Server]:
    one = Server(tmp_path, ma)
    yield one
    one.stop()


Start = Callable[[], None]


def test_what_the_ma_wants_runs_and_what_it_does_not_want_ends_with_a_closing_record(
    server: Server, ma: FakeMa
) -> None:
    ma.want(wanted())
    server.messages["orders"] = [message({"do": "ok"}), message({"do": "raise"})]
    server.start()
    server.until("running")
    eventually(lambda: server.report()["failed"] >= 1 and server.report()["handled"] == 1, "the counts")
    assert server.report()["connected"] and server.report()["counts"]["same_type"] == "RuntimeError"
    ma.want()
    eventually(lambda: "closing" in ma.kinds(), "the closing record")
    assert ma.kinds()[-1] == "closing"
    (closing,) = ma.contents("closing")
    assert ma.spooled(closing) == len(ma.kinds()) - 1
    assert (closing["handled"], closing["failed"]) == (1, 3)
    assert server.links["orders"].stopped


def test_what_the_ma_has_lost_comes_again_though_nothing_new_happens(server: Server, ma: FakeMa) -> None:
    ma.want(wanted())
    server.messages["orders"] = [message({"do": "raise"})]
    server.start()
    eventually(lambda: len(ma.contents("protocol")) == 3, "all attempts")
    eventually(lambda: ma.last["spool"]["rows"] == 0 and ma.last["spool"]["after"] == 3, "an empty spool")
    stored = set(ma.records)
    ma.lose(ma.last["spool"]["id"], after=1)
    eventually(lambda: set(ma.records) == stored, "what was lost")
    assert len(ma.contents("protocol")) == 3


def test_heartbeats_say_who_speaks_what_is_offered_and_what_is_known(server: Server, ma: FakeMa) -> None:
    server.start()
    eventually(lambda: ma.last.get("desired_version") == "v0", "the desired state")
    beat = ma.last
    assert beat["server"] == "srv-1" and UUID(beat["boot"])
    offered = {agent["name"]: agent for agent in beat["agents"]}
    assert {"demo.scripted", "demo.orders", "demo.invoices", "demo.audit", "bench.noop"} <= offered.keys()
    assert offered["demo.orders"]["version"] == "1.2" and offered["demo.orders"]["kind"] == "message"
    assert offered["demo.audit"]["summary"].startswith("Writes a line")
    assert beat["spool"]["limit_bytes"] == 10**7 and not beat["spool"]["full"]


def test_a_command_makes_it_look_at_once(server: Server, ma: FakeMa) -> None:
    server.config = replace(server.config, heartbeat_seconds=60)
    server.start()
    eventually(lambda: len(ma.heartbeats) >= 1, "the first heartbeat")
    before = len(ma.heartbeats)
    assert server.host is not None
    server.host.poll_now()
    eventually(lambda: len(ma.heartbeats) > before, "another heartbeat", 40)


def test_a_command_that_comes_while_a_heartbeat_is_under_way_is_not_forgotten(
    server: Server, ma: FakeMa, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The MA may have answered that one before it wanted something else."""
    heartbeat = MaClient.heartbeat

    def commanded(client: MaClient, said: Heartbeat) -> HeartbeatReply:
        reply = heartbeat(client, said)
        if len(ma.heartbeats) == 1:
            assert server.host is not None
            server.host.poll_now()
        return reply

    monkeypatch.setattr(MaClient, "heartbeat", commanded)
    server.config = replace(server.config, heartbeat_seconds=60)
    server.start()
    eventually(lambda: len(ma.heartbeats) == 2, "another heartbeat", 40)


def test_what_was_wanted_last_runs_at_the_next_start_while_the_ma_is_away(server: Server, ma: FakeMa) -> None:
    ma.want(wanted())
    server.start()
    server.until("running")
    server.stop()
    assert "closing" not in ma.kinds(), "the run goes on after the restart"
    ma.down = True
    server.messages["orders"] = [message({"do": "raise"}, identity="ID:1")]
    server.start()
    eventually(lambda: len(server.links["orders"].settled) == 3, "three attempts")
    assert ma.kinds() == []
    ma.down = False
    eventually(lambda: len(ma.contents("protocol")) == 3, "the protocols")


def test_what_was_wanted_last_does_not_begin_before_an_ma_that_is_there_has_answered(
    server: Server, ma: FakeMa, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person switched it off and put another agent in its place while this server was down."""
    heartbeat, asked = MaClient.heartbeat, []

    def slowly(client: MaClient, said: Heartbeat) -> HeartbeatReply:
        asked.append(said)
        until = time.monotonic() + 3
        while len(asked) == 1 and not server.links and time.monotonic() < until:
            time.sleep(0.05)
        return heartbeat(client, said)

    ma.want(wanted())
    server.start()
    server.until("running")
    server.stop()
    server.links.clear()
    ma.want(wanted(epoch=2, agent="bench.noop"))
    monkeypatch.setattr(MaClient, "heartbeat", slowly)
    server.messages["orders"] = [message({"do": "raise"})]
    server.start()
    eventually(lambda: bool(ma.kinds()) and server.report().get("state") == "running", "the new run")
    assert [run["state"] for run in ma.contents("closing")] == ["finished"]
    assert "protocol" not in ma.kinds(), "the old agent has had none"


def test_what_was_wanted_last_does_not_begin_where_the_ma_refuses_the_server(
    server: Server, ma: FakeMa
) -> None:
    ma.want(wanted())
    server.start()
    server.until("running")
    server.stop()
    server.links.clear()
    token, ma.token = ma.token, "another"
    before = len(ma.connections)
    server.start()
    eventually(lambda: len(ma.connections) > before + 2, "heartbeats that are refused")
    time.sleep(0.5)
    assert server.links == {}
    ma.token = token
    server.until("running")


def test_an_old_wish_does_not_begin_when_the_new_one_could_not_be_stored(server: Server, ma: FakeMa) -> None:
    ma.want(wanted())
    server.start()
    server.until("running")
    server.stop()
    server.links.clear()
    in_the_way = server.config.data / "desired.new"
    in_the_way.mkdir()
    ma.want()
    ma.heartbeats.clear()
    server.start()
    eventually(lambda: "desired.json" in said(ma.last.get("problems", ())), "the problem")
    ma.down = True
    before = len(ma.connections)
    eventually(lambda: len(ma.connections) > before + 2, "heartbeats without an answer")
    time.sleep(0.5)
    assert server.links == {}
    in_the_way.rmdir()
    ma.down = False
    eventually(lambda: "closing" in ma.kinds(), "the closing record")


def test_a_run_that_nobody_wants_after_a_restart_is_closed(server: Server, ma: FakeMa) -> None:
    ma.want(wanted())
    server.messages["orders"] = [message({"do": "raise", "first": 1})]
    server.start()
    eventually(lambda: "recovered" in ma.kinds(), "a recovery")
    server.stop()
    ma.want()
    server.start()
    eventually(lambda: "closing" in ma.kinds(), "the closing record")
    (closing,) = ma.contents("closing")
    assert (ma.spooled(closing), closing["handled"], closing["failed"]) == (2, 1, 1)


def test_an_unknown_agent_is_a_problem_to_show_and_nothing_else(server: Server, ma: FakeMa) -> None:
    other = wanted(activation=UUID(int=5), setting="other", queue="other")
    ma.want(wanted(agent="no.such"), other)
    server.start()
    server.until("failed")
    assert "unknown agent no.such" in said(server.report()["problems"])
    server.until("running", "other")
    assert "orders" not in server.links


def test_a_module_that_cannot_be_imported_is_a_problem_to_show(server: Server, ma: FakeMa) -> None:
    server.config = replace(server.config, agents=("no_such_module", *SAMPLES))
    ma.want(wanted())
    server.start()
    server.until("running")
    assert "no_such_module" in said(ma.last["problems"])


def test_a_higher_epoch_replaces_the_run_and_a_lower_one_does_not(server: Server, ma: FakeMa) -> None:
    ma.want(wanted(epoch=2))
    server.start()
    server.until("running")
    first = server.links["orders"]
    ma.want(wanted(epoch=2), wanted(epoch=1))
    time.sleep(0.4)
    assert server.links["orders"] is first
    ma.want(wanted(epoch=3))
    eventually(lambda: server.links["orders"] is not first, "a new link")
    assert first.stopped, "the old run had given everything back"
    eventually(lambda: ma.contents("closing") != [], "the closing record of the old epoch")
    assert ma.contents("closing")[0]["run"]["epoch"] == 2


def test_a_trip_while_the_ma_is_away_is_told_later_and_the_run_is_not_taken_up_again(
    server: Server, ma: FakeMa
) -> None:
    ma.want(wanted(max_failures=6))
    server.start()
    server.until("running")
    ma.down = True
    server.links["orders"].put(*(message({"do": "raise"}) for _ in range(9)))
    eventually(lambda: server.links["orders"].stopped, "the link's end")
    server.stop()
    server.links.clear()
    server.start()
    time.sleep(0.5)
    assert server.links == {}, "its desired state still lists it"
    ma.down = False
    eventually(lambda: "closing" in ma.kinds(), "its records")
    assert ma.kinds() == ["protocol", "protocol", "interruption", "closing"]
    server.until("interrupted")
    ma.want(wanted(max_failures=6, epoch=2))
    server.until("running")
    assert server.report()["counts"]["any"] == 0


def test_a_changed_setting_starts_its_processes_anew_within_the_same_run(server: Server, ma: FakeMa) -> None:
    ma.want(wanted(parameters={"a": 1}))
    server.start()
    server.until("running")
    first = server.links["orders"]
    ma.want(wanted(parameters={"a": 2}))
    eventually(lambda: server.links["orders"] is not first, "a new link")
    ma.want(wanted(parameters={"a": 2}, max_attempts=7))
    server.until("running")
    second = server.links["orders"]
    time.sleep(0.5)
    assert server.links["orders"] is second, "limits need no restart"
    assert ma.contents("closing") == []


def test_a_run_that_was_closed_is_not_started_again_for_an_old_wish(server: Server, ma: FakeMa) -> None:
    ma.want(wanted())
    server.start()
    server.until("running")
    ma.want()
    eventually(lambda: "closing" in ma.kinds(), "the closing record")
    server.links.clear()
    ma.want(wanted())
    server.until("finished")
    assert server.links == {}


def test_a_desired_state_of_another_server_is_not_obeyed(server: Server, ma: FakeMa) -> None:
    ma.desired = replace(ma.desired, server="srv-2", version="x", runs=(wanted(),))
    server.start()
    eventually(lambda: len(ma.heartbeats) > 3, "heartbeats")
    assert server.links == {} and ma.last["desired_version"] == ""


def test_a_second_container_on_the_same_folder_is_refused(server: Server) -> None:
    server.start()
    with pytest.raises(FolderTaken):
        Host(server.config, server.connect)


def test_a_run_that_ends_by_our_own_mistake_is_started_again(
    server: Server, ma: FakeMa, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kma.run.consumer import ConsumerLoop

    real, broken = ConsumerLoop._receive, iter([True])

    def receive(self: ConsumerLoop, delivery: Any) -> None:
        if next(broken, False):
            raise ZeroDivisionError("a mistake of ours")
        real(self, delivery)

    monkeypatch.setattr(ConsumerLoop, "_receive", receive)
    ma.want(wanted())
    server.messages["orders"] = [message({"do": "ok"})]
    server.start()
    eventually(lambda: "a mistake of ours" in said(server.report().get("problems", ())), "the problem")
    server.until("running")
    server.links["orders"].put(message({"do": "ok"}))
    eventually(lambda: server.report().get("handled") == 1, "a handling")


def test_a_hundred_failures_while_the_ma_is_away_all_arrive_once(server: Server, ma: FakeMa) -> None:
    ma.want(wanted(concurrency=2, max_attempts=2))
    server.start()
    server.until("running")
    ma.down = True
    for number in range(50):
        server.links["orders"].put(message({"do": "raise"}, identity=f"ID:{number}"))
    eventually(lambda: server.links["orders"].outcomes()[Settle.FAIL] == 100, "all attempts")
    assert ma.contents("protocol") == []
    ma.down = False
    eventually(lambda: len(ma.contents("protocol")) == 100, "all protocols")
    time.sleep(0.5)
    seen = [(one["message"]["key"], one["message"]["attempt"]) for one in ma.contents("protocol")]
    assert len(seen) == len(set(seen)) == 100


def test_the_data_folder_is_its_owners_alone(server: Server, ma: FakeMa) -> None:
    ma.want(wanted(parameters={"password": "x"}))
    server.start()
    server.until("running")
    folder = server.config.data
    assert folder.stat().st_mode & 0o077 == 0
    stored = json.loads((folder / "desired.json").read_text())
    assert stored["runs"][0]["setting"] == "orders"
    assert (folder / "desired.json").stat().st_mode & 0o077 == 0


def test_half_a_desired_state_on_disk_is_as_none(server: Server, ma: FakeMa) -> None:
    server.config.data.mkdir(parents=True)
    (server.config.data / "desired.json").write_text('{"server": "srv-1", "runs": [{"act')
    ma.want(wanted())
    server.start()
    server.until("running")


def test_a_wish_that_finds_no_room_is_a_problem_to_show_until_it_does(server: Server, ma: FakeMa) -> None:
    in_the_way = server.config.data / "desired.new"
    in_the_way.mkdir(parents=True)
    ma.want(wanted())
    server.start()
    eventually(lambda: "desired.json" in said(ma.last.get("problems", ())), "the problem")
    assert server.report() == {}, "nothing begins that a restart would not know"

    in_the_way.rmdir()
    server.until("running")
    eventually(lambda: ma.last["problems"] == [], "the end of the problem")


def test_a_disk_that_is_full_is_told_and_no_run_takes_messages_until_it_takes_records(
    server: Server, ma: FakeMa
) -> None:
    """SQLite has one answer for a full disk and for a file that may not grow."""
    ma.want(wanted(), wanted(setting="others", activation=UUID(int=5)))
    ma.answers = [(503, {"Retry-After": "300"}, {})] * 1000
    server.messages["orders"] = [message({"do": "raise", "text": "x" * 8000}) for _ in range(60)]
    server.start()
    server.until("running")
    server.until("running", "others")
    assert server.host is not None
    _grow_to(server, 30)

    def told() -> bool:
        return "disk is full" in said(ma.last["problems"])

    eventually(told, "the heartbeat's problem")
    assert ma.last["spool"]["full"], "what the doctor and the pages tell"
    eventually(lambda: "disk is full" in said(server.report("others")["problems"]), "the other run's problem")
    settled, attempts = len(server.links["orders"].settled), server.report()["failed"]
    server.links["others"].put(message({"do": "ok"}))
    time.sleep(0.5)
    assert server.links["others"].settled == [] and server.report()["handled"] == 0, "nothing is begun"
    assert len(server.links["orders"].settled) == settled <= attempts, "what is not stored is not settled"

    _grow_to(server, 2**30)
    eventually(lambda: not ma.last["spool"]["full"] and not told(), "the end of the problem")
    eventually(lambda: len(server.links["others"].settled) == 1, "the other run's message")
    ma.answers = []
    server.host._reporter.wake()
    eventually(lambda: len(server.links["orders"].dead) == 60, "every message's end")
    eventually(lambda: len(ma.contents("protocol")) == 180, "a protocol of every attempt")


def _grow_to(server: Server, pages: int) -> None:
    """How many pages of 4 KB the spool's file may have from now on, at least those that it has."""
    assert server.host is not None
    with server.host._file.reading() as connection:
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
