"""The tutorials, done as they stand there: every file is saved, every command is run. Of three hosts all are
this machine, and a tunnel between them does nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.handbook.blocks import DOCS, Reader, environ_of_a_person
from tests.product.clone import Clone, copy, started

SSH = """#!/bin/sh
case "$1" in -N) exec sleep infinity ;; esac
# -n ADDRESS COMMAND
cd '{home}' && HOME='{home}' exec sh -c "$3" < /dev/null
"""
# scp -q FROM… TO
SCP = """#!/bin/bash
for file in "${{@:2:$#-2}}"; do cp '{home}'/"${{file#*:}}" "${{@: -1}}"; done
"""


@pytest.fixture
def clone(child_processes: None, tmp_path: Path) -> Iterator[Clone]:
    with started(tmp_path) as clone:
        yield clone


def test_the_operator_s_first_hour(clone: Clone, tmp_path: Path) -> None:
    hour = clone.reader(tmp_path / "exported")
    hour.follow(DOCS / "tutorials" / "operator.md")
    printed = "\n".join(hour.printed)
    assert "velvet" in printed and "same_version" in printed
    assert "breaker tripped" in printed and "stopped" in hour.printed[-1]


def test_the_first_agent(clone: Clone, tmp_path: Path) -> None:
    author = clone.reader(tmp_path / "exported")
    author.follow(DOCS / "tutorials" / "first-agent.md")
    assert "4 passed" in author.printed[0]

    def processed() -> int:
        (job,) = clone.call("GET", "replays/?setting=prices")["results"]
        return int(clone.call("GET", f"replays/{job['id']}/")["outcomes"]["handled"])

    clone.until("the corrected agent has processed the order", lambda: processed() == 1)


@pytest.mark.night
def test_the_analyst_s_first_question_and_the_guide_to_the_pipeline(
    child_processes: None, tmp_path: Path
) -> None:
    """With the pipeline, as a person has it."""
    with started(tmp_path, MA_PIPELINE="", MA_PIPELINE_MEMORY_MB="2048") as clone:
        analyst = clone.reader(tmp_path / "exported")
        analyst.follow(DOCS / "tutorials" / "analyst.md")
        assert '"setting_key":"demo-history"' in analyst.printed[-2]
        analyst.follow(DOCS / "how-to" / "pipeline.md")


@pytest.fixture
def hosts(clone: Clone, tmp_path: Path) -> Iterator[tuple[Reader, Reader]]:
    """Two people on machines of their own, with what SSH does for them."""
    home, programs = tmp_path / "home", tmp_path / "bin"
    home.mkdir()
    (home / "ma").symlink_to(clone.root)
    programs.mkdir()
    for name, text in (("ssh", SSH), ("scp", SCP)):
        (programs / name).write_text(text.format(home=home))
        (programs / name).chmod(0o755)
    environ = environ_of_a_person()
    environ["PATH"] = f"{programs}:{environ['PATH']}"
    readers = []
    for name in ("kma-a", "kma-b"):
        copy(tmp_path / name / "ma")
        own = environ | {"HOME": str(tmp_path / name)}
        instead = clone.addresses() | {"KMA_SERVER=kma-a": f"KMA_SERVER={name}"}
        readers.append(Reader(tmp_path / name / "ma", own, tmp_path / f"{name}.exported", instead))
    try:
        yield readers[0], readers[1]
    finally:
        for each in readers:
            each.close()


@pytest.mark.night
def test_three_hosts(clone: Clone, hosts: tuple[Reader, Reader], tmp_path: Path) -> None:
    page = DOCS / "tutorials" / "three-hosts.md"
    first = clone.reader(tmp_path / "exported")
    first.follow(page, "On the first machine")
    for each in hosts:
        each.follow(page, "On each of the two others")
    first.follow(page, "See them work")
    clone.until("all are greeted", lambda: clone.count("greetings") == [0])
    one, again = first.blocks(page, "See one take over")
    hosts[0].interrupt("kma")
    first.do(one)
    hosts[0].do(hosts[0].blocks(page, "On each of the two others")[-1])
    first.do(again)
