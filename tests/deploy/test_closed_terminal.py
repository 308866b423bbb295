"""./ma up in front of a person, whose terminal is closed: everything must end all the same."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy import config as configuration
from deploy.config import REPOSITORY
from deploy.environment import Process
from deploy.layout import Layout
from deploy.processes import order
from deploy.processes.runner import Runner, write_runner_files

pytestmark = pytest.mark.process

SLEEPER = "sh -c 'while true; do sleep 0.2; done'"
# `up` with one small process in the place of ours: how it waits and ends is the real thing.
UP = """
import sys
from deploy import config
from deploy.commands import up
from deploy.processes.runner import Runner

asked = []
real = Runner.alive
# Only the first question, whether everything runs already, is answered for it.
Runner.alive = lambda runner: bool(asked) and real(runner) or asked.append(1)
up._start = lambda *given, **named: "MA is ready."
sys.exit(up.up(config.read({"MA_DATA": sys.argv[1]}), detach=False, demo=False))
"""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "data")
    layout.make_folders()
    config = configuration.read({"MA_DATA": str(layout.data)})
    write_runner_files([Process("web", SLEEPER)], config, layout)
    return layout


def read_until(terminal: int, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        seen += os.read(terminal, 1000)
    return seen


def up_in_a_terminal(layout: Layout) -> tuple[int, int]:
    """The pid and the terminal's other end, once everything runs."""
    runner = Runner(layout)
    runner.begin()
    runner.start("web")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(REPOSITORY)
        os.execv(sys.executable, [sys.executable, "-c", UP, str(layout.data)])
    assert b"Ctrl-C stops" in read_until(terminal, b"MA is ready."), "that block comes last"
    return pid, terminal


def test_closing_the_terminal_stops_everything(layout: Layout) -> None:
    try:
        pid, terminal = up_in_a_terminal(layout)
        web = Runner(layout).state("web").pid
        os.close(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert not Runner(layout).alive()
        assert not Path(f"/proc/{web}").exists()
    finally:
        order.stop_everything(layout, lambda text: None)


def test_signals_that_come_while_it_stops_change_nothing(layout: Layout) -> None:
    try:
        pid, terminal = up_in_a_terminal(layout)
        os.kill(pid, signal.SIGHUP)
        read_until(terminal, b"stopping")
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            os.kill(pid, number)
            time.sleep(0.05)
        os.close(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert not Runner(layout).alive()
    finally:
        order.stop_everything(layout, lambda text: None)


def test_a_pipe_that_nobody_reads_does_not_stop_the_stopping(layout: Layout) -> None:
    Runner(layout).begin()
    Runner(layout).start("web")
    reader, writer = os.pipe()
    os.close(reader)
    environ = {"PATH": os.environ["PATH"], "MA_DATA": str(layout.data)}
    command = [sys.executable, str(REPOSITORY / "ma"), "down"]
    done = subprocess.run(command, env=environ, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
    assert not Runner(layout).alive()
