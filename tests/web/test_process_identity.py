"""A process is known to have ended by those of its machine alone."""

import os
import subprocess
import sys

import pytest

from console.jobs import detached

pytestmark = pytest.mark.process


def started_process() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def identity_of(pid: int) -> str:
    machine = detached.identity().rsplit("/", 3)[0]
    return f"{machine}/{pid}/{detached.started(pid)}"


def test_this_process_is_not_gone() -> None:
    mine = detached.identity()
    assert mine and not detached.is_gone(mine)


def test_one_that_was_killed_is_gone_also_before_anybody_asked_for_its_end() -> None:
    with started_process() as child:
        known = identity_of(child.pid)
        assert not detached.is_gone(known)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert detached.is_gone(known)
        child.wait()
        assert detached.is_gone(known)


def test_a_pid_that_was_given_out_again_is_another_process() -> None:
    known = detached.identity()
    assert detached.is_gone(known[:-1] + ("0" if known[-1] != "0" else "1"))


def test_of_another_machine_nothing_is_known() -> None:
    _boot, rest = detached.identity().split("/", 1)
    assert not detached.is_gone(f"another-boot/{rest}")
    assert not detached.is_gone("")
