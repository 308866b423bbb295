import pytest

from deploy.config import REPOSITORY
from deploy.console import DeployError
from deploy.environment import Process, expand, parse_procfile
from deploy.processes import order as start
from deploy.processes.order import in_order

NAMES = ("artemis", "redis", "web", "worker", "beat", "feed", "kma", "demo")


def test_our_procfile_has_every_process() -> None:
    processes = parse_procfile((REPOSITORY / "Procfile").read_text())
    assert tuple(process.name for process in processes) == NAMES


def test_every_process_is_started_once_and_the_broker_before_all() -> None:
    order = (*start.FIRST, *start.SITE, *start.OTHERS, *start.DEMO)
    assert sorted(order) == sorted(NAMES)
    assert order[0] == "artemis"


def test_the_kma_stands_for_one_process_per_server() -> None:
    expanded = expand((Process("web", "w"), Process("kma", "k"), Process("demo", "d")), ("srv-1", "north"))
    assert expanded == (
        Process("web", "w"),
        Process("kma-srv-1", "k", "srv-1"),
        Process("kma-north", "k", "north"),
        Process("demo", "d"),
    )
    assert [process.kind for process in expanded] == ["web", "kma", "kma", "demo"]


def test_comments_and_empty_lines_are_passed_over() -> None:
    assert parse_procfile("# nothing\n\n  web:  run it: now \n") == (Process("web", "run it: now"),)


@pytest.mark.parametrize("text", ["web", "web:", "Web: x", "a b: x", "web: x\nweb: y"])
def test_a_line_that_is_none_is_refused_with_its_number(text: str) -> None:
    with pytest.raises(DeployError, match=rf"Procfile, line {len(text.splitlines())}"):
        parse_procfile(text)


def test_the_kmas_end_first_and_the_broker_last() -> None:
    names = ["artemis", "beat", "demo", "feed", "kma-a", "kma-b", "redis", "web", "worker"]
    groups = in_order(names)
    assert groups[0] == ["kma-a", "kma-b"]
    assert groups[-1] == ["artemis"]
    assert sorted(name for group in groups for name in group) == names


def test_a_process_that_the_order_does_not_know_is_ended_all_the_same() -> None:
    assert in_order(["artemis", "new"]) == [["new"], ["artemis"]]
