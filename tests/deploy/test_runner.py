"""The process runner itself, with small processes in the place of ours."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy import config as configuration
from deploy.config import REPOSITORY
from deploy.console import DeployError
from deploy.environment import Process
from deploy.layout import Layout
from deploy.processes import earlier_starts, order
from deploy.processes.readiness import reached
from deploy.processes.runner import Runner, _exists, write_runner_files
from deploy.services import redis
from deploy.services.ports import free_ports

pytestmark = pytest.mark.process

SLEEPER = "sh -c 'echo begun; while true; do sleep 0.2; done'"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "data")
    layout.make_folders()
    return layout


@pytest.fixture
def runner(layout: Layout) -> Iterator[Runner]:
    config = configuration.read({"MA_DATA": str(layout.data)})
    processes = [
        Process("web", SLEEPER),
        Process("kma-one", SLEEPER, "one"),
        Process("feed", "echo no; exit 3"),
    ]
    write_runner_files(processes, config, layout)
    runner = Runner(layout)
    runner.begin()
    yield runner
    order.stop_everything(layout, lambda text: None)


def until(true: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_nothing_runs_before_it_is_started(runner: Runner) -> None:
    assert {state.state for state in runner.states()} == {"STOPPED"}


@pytest.mark.kill
def test_a_process_that_is_killed_comes_back(runner: Runner) -> None:
    runner.start("web")
    until(lambda: runner.state("web").running)
    first = runner.state("web").pid
    os.kill(first, signal.SIGKILL)
    until(lambda: runner.state("web").running and runner.state("web").pid != first)


def test_starting_twice_starts_once(runner: Runner) -> None:
    runner.start("web")
    until(lambda: runner.state("web").running)
    pid = runner.state("web").pid
    runner.start("web")
    assert runner.state("web").pid == pid


def test_its_output_is_in_its_log(runner: Runner, layout: Layout) -> None:
    runner.start("web")
    until(lambda: layout.log("web").exists() and layout.log("web").read_text() == "begun\n")


def test_a_process_that_ends_at_once_is_not_ready_and_its_last_words_are_shown(
    runner: Runner, layout: Layout
) -> None:
    runner.start("feed")
    until(lambda: runner.state("feed").state == "BACKOFF")
    feed = Process("feed", "")
    assert not reached(feed, lambda: True, runner, layout, waited=1)
    with pytest.raises(DeployError, match=r"(?s)feed is not ready after 999 s .*\| no"):
        reached(feed, lambda: True, runner, layout, waited=999)


def test_everything_ends_in_order_and_nothing_is_left(runner: Runner, layout: Layout) -> None:
    for name in ("web", "kma-one"):
        runner.start(name)
    until(lambda: all(runner.state(name).running for name in ("web", "kma-one")))
    pids = [runner.state(name).pid for name in ("web", "kma-one")]
    said: list[str] = []
    assert order.stop_everything(layout, said.append)
    assert said == ["kma-one stopped", "web stopped"]
    assert not runner.alive()
    assert not any(map(exists, pids))
    assert earlier_starts.find(layout) == []


@pytest.mark.kill
def test_what_a_killed_runner_left_behind_is_found_and_ended(runner: Runner, layout: Layout) -> None:
    runner.start("web")
    until(lambda: runner.state("web").running)
    left = runner.state("web").pid
    os.kill(int(layout.supervisor_pid.read_text()), signal.SIGKILL)
    until(lambda: not runner.alive())
    assert left in earlier_starts.find(layout)
    assert order.stop_everything(layout, lambda text: None)
    until(lambda: not exists(left))


@pytest.mark.kill
def test_a_redis_that_a_killed_runner_left_is_found_though_it_hides_its_environment(layout: Layout) -> None:
    (port,) = free_ports(1)
    url = f"redis://:secret@127.0.0.1:{port}/0"
    process = redis.run_redis(redis.write_config(layout.redis, url), layout.log("redis"))
    try:
        until(lambda: redis.redis_answers(url))
        assert earlier_starts.find(layout) == [process.pid]
        assert earlier_starts.find(Layout(layout.data / "other")) == []
        threading.Thread(target=process.wait, daemon=True).start()  # the parent buries it, as init would
        assert order.stop_everything(layout, lambda text: None)
        until(lambda: not exists(process.pid))
    finally:
        process.kill()


def test_a_person_s_program_in_a_folder_of_ours_is_let_be(layout: Layout) -> None:
    with subprocess.Popen(["sleep", "60"], cwd=layout.redis) as process:
        assert earlier_starts.find(layout) == []
        process.kill()


def test_supervisor_s_own_control_program_works_with_our_configuration(
    runner: Runner, layout: Layout
) -> None:
    control = [str(REPOSITORY / ".venv/bin/supervisorctl"), "-c", str(layout.supervisor_config)]
    shown = subprocess.run([*control, "start", "web"], capture_output=True, text=True, check=True).stdout
    assert shown == "web: started\n"
    assert runner.state("web").running


def test_stopping_nothing_says_so(layout: Layout) -> None:
    assert not order.stop_everything(layout, lambda text: None)


def test_a_runner_that_ended_and_that_nobody_waits_for_is_gone() -> None:
    """In a container whose first process waits for nobody `./ma down` waited for it for ever."""
    ended = subprocess.Popen(["true"])
    until(lambda: not _exists(ended.pid))
    assert Path(f"/proc/{ended.pid}").exists()
    ended.wait()
    assert _exists(os.getpid()) and not _exists(ended.pid)
