"""Dashboard, alert rules and scrape configuration: valid by Prometheus' own tool, and about metrics that
there are."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from deploy.config import REPOSITORY
from exposition.declared import Declared, Distribution, Kind, Samples, text
from kma.host.metrics import OF_KMA
from ma_site.scrape.declared import DECLARED

FOLDER = REPOSITORY / "deploy" / "monitoring"
PROCESSES = {**DECLARED, "kma": OF_KMA}
# Of Prometheus itself, and of the library that tells of a process.
OF_OTHERS = {"up", "process_cpu_seconds_total"}
NAME = re.compile(r"\b(?:k?ma_\w+|process_\w+|up)\b")


def promtool(*arguments: str, given: bytes = b"") -> None:
    done = subprocess.run(["promtool", *arguments], cwd=FOLDER, input=given, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def rules() -> list[dict[str, Any]]:
    return [
        rule
        for group in yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
        for rule in group["rules"]
    ]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    for panel in panels():
        yield from (target["expr"] for target in panel["targets"])


def names() -> set[str]:
    """What a scrape calls them: a histogram has three names."""
    found = set[str]()
    for declared in PROCESSES.values():
        for each in declared:
            ends = ("_bucket", "_sum", "_count") if each.kind is Kind.HISTOGRAM else ("",)
            found |= {f"{each.name}{end}" for end in ends}
    return found


def example(declared: tuple[Declared, ...]) -> bytes:
    samples = Samples(declared)
    for each in declared:
        within = Distribution((1,) * len(each.buckets), 1, 2.5)
        samples.add(each.name, within if each.kind is Kind.HISTOGRAM else 1, *("x" for _ in each.labels))
    return text(declared, samples.found, datetime.now(UTC))


@pytest.mark.process
@pytest.mark.parametrize("process", PROCESSES)
def test_metrics_are_named_as_prometheus_asks(process: str) -> None:
    promtool("check", "metrics", given=example(PROCESSES[process]))


@pytest.mark.process
def test_a_metric_that_is_named_otherwise_is_noticed() -> None:
    with pytest.raises(AssertionError, match="_total"):
        promtool("check", "metrics", given=b"# HELP x_y Says.\n# TYPE x_y counter\nx_y 1\n")


@pytest.mark.process
@pytest.mark.parametrize("arguments", [("check", "rules", "rules.yml"), ("test", "rules", "rules.test.yml")])
def test_the_rules_are_valid_and_do_what_their_tests_say(arguments: tuple[str, ...]) -> None:
    promtool(*arguments)


@pytest.mark.process
def test_the_scrape_configuration_is_valid() -> None:
    promtool("check", "config", "--syntax-only", "prometheus.yml")


def test_each_rule_has_a_test_in_which_it_fires() -> None:
    tested = set()
    for test in yaml.safe_load((FOLDER / "rules.test.yml").read_text())["tests"]:
        tested |= {each["alertname"] for each in test.get("alert_rule_test", ()) if each.get("exp_alerts")}
        tested |= {each["expr"] for each in test.get("promql_expr_test", ())}
    assert {rule.get("alert") or rule["record"] for rule in rules()} - tested == {"MaNotScraped"}, (
        "of an absent series the tool can test the silence alone"
    )


def test_each_alert_has_a_severity_and_says_what_is_wrong() -> None:
    for rule in rules():
        if "alert" in rule:
            # One takes over that of the MA, with the label `severity`.
            assert (
                rule.get("labels", {}).get("severity") in ("warning", "critical")
                or "severity" in rule["expr"]
            )
            assert rule["annotations"]["summary"]


def test_dashboard_and_rules_ask_for_metrics_that_there_are() -> None:
    asked = {name for each in expressions() for name in NAME.findall(each)}
    recorded = {rule["record"].split(":")[1] for rule in rules() if "record" in rule}
    assert asked - names() - OF_OTHERS - recorded == set()
    assert len(asked) > 30


def test_the_dashboard_shows_every_panel_once_beside_the_others() -> None:
    places = set[tuple[int, int]]()
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids)) > 20
    for panel in panels():
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & places, panel["title"]
        places |= own
        assert panel["description"].endswith(".") and place["x"] + place["w"] <= 24
