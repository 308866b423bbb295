"""What a newcomer reads when everything runs: the last lines of `./ma up`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.product.house import ROOT, House

pytestmark = pytest.mark.process


def test_the_last_lines_say_where_as_whom_and_what_next(house: House) -> None:
    last = house.printed.rstrip().splitlines()[-8:]
    words = {line.split()[0] for line in last if line.strip()}
    assert {"address:", "user:", "password:", "next:", "check:"} <= words, last
    assert house.facts["url"] in "\n".join(last) and house.password in "\n".join(last)


def test_a_second_start_shows_the_first_password_again_while_nobody_has_changed_it(house: House) -> None:
    house.down()
    assert house.password in house.up()


def states(house: House) -> dict[str, str]:
    told = house.run("status", "--json", check=False)
    return {each["name"]: each["state"] for each in json.loads(told)["processes"]}


def test_a_start_that_was_killed_is_made_whole_by_the_next_one(tmp_path: Path) -> None:
    """What the killed one had begun runs on by itself; the next one said "already running" of it. Both begin
    with nothing: no database, no unpacked broker."""
    house = House(tmp_path / "killed", servers=("srv-1",))
    command = [sys.executable, str(ROOT / "ma"), "up", "--detach", "--no-demo"]
    begun = subprocess.Popen(
        command, cwd=ROOT, env=house.environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        house.until("Redis runs", lambda: states(house).get("redis") == "RUNNING")
        begun.kill()
        begun.wait()
        assert states(house)["kma-srv-1"] == "STOPPED", "killed before it came to the KMA"
        house.run("up", "--detach", "--no-demo")
        assert {state for name, state in states(house).items() if name != "demo"} == {"RUNNING"}
        assert "already running" in house.run("up", "--detach", "--no-demo")
    finally:
        begun.kill()
        begun.wait()
        house.down()
