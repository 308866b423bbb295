"""A real Prometheus scrapes a running installation: everything that dashboard and rules ask for is there."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.product import scripted
from tests.product.house import House
from tests.product.prometheus import MONITORING, Prometheus, prometheus

KEY = "scraped"
# A part of an expression: a metric with the labels that it is asked for by.
SELECTOR = re.compile(r"\b(?:k?ma_\w+|process_\w+|up)\b(?:\{[^}]*\})?")
# What has no series here, and why.
EMPTY = {'ma_tasks_total{result="failure"}': "no task fails"}


def alerts() -> list[str]:
    groups = yaml.safe_load((MONITORING / "rules.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"] if "alert" in rule]


def asked() -> set[str]:
    """What panels ask for, and what alert rules look at: they themselves return nothing while all is well."""
    panels = json.loads((MONITORING / "grafana.json").read_text())["panels"]
    found = {target["expr"] for panel in panels for target in panel.get("targets", ())}
    found |= {selector for alert in alerts() for selector in SELECTOR.findall(alert)}
    return {
        each.replace("$__rate_interval", "30s").replace("$setting", ".*").replace("$server", ".*")
        for each in found
    }


def without_series(scraped: Prometheus) -> set[str]:
    return {each for each in asked() if not scraped.query(each)}


def value(scraped: Prometheus, expression: str) -> float:
    found = scraped.query(expression)
    return float(found[0]["value"][1]) if len(found) == 1 else -1.0


def test_every_expression_of_dashboard_and_rules_returns_a_series(house: House, tmp_path: Path) -> None:
    address = house.setting(KEY, concurrency=1, spread="ANY")
    house.enable(KEY)
    bodies: list[Any] = [scripted.ok(n) for n in range(12)]
    bodies += [{"do": "invalid", "text": "wrong", "note": 99}]
    targets = {
        "ma": [house.facts["url"].removeprefix("http://").rstrip("/")],
        "ma-processes": house.metrics_of_site,
        "kma": house.metrics_of_kmas,
    }
    with prometheus(tmp_path, targets, house.data / "secrets" / "metrics_token") as scraped:
        house.until("Prometheus is ready", scraped.is_ready)
        house.until("it reaches each process", lambda: len(scraped.query("up == 1")) == 5)
        house.until(
            "it knows the setting", lambda: bool(scraped.query(f'ma_setting_enabled{{setting="{KEY}"}} == 1'))
        )
        house.publish(address, bodies)
        house.until("it counts what was handled", lambda: value(scraped, _handled("succeeded")) == 12)
        assert value(scraped, _handled("failed")) == 1
        house.until("and the dead letter", lambda: value(scraped, f'ma_dead_letters{{setting="{KEY}"}}') == 1)
        house.until(
            "nothing waits",
            lambda: value(scraped, f'ma_subscription_messages{{setting="{KEY}",state="waiting"}}') == 0,
        )
        house.until("every series is there", lambda: without_series(scraped) <= EMPTY.keys(), 120)
        assert without_series(scraped) <= EMPTY.keys()
        assert len(asked()) > 50

        # The alerts themselves are answered, and nothing is wrong with this house but what its tests did.
        for alert in alerts():
            scraped.query(alert)
        assert scraped.query('ALERTS{alertname=~"Ma.*Away|KmaAway|MaLabelsLeftOut"}') == []

        # The MA's totals are those of the KMA.
        house.until(
            "the MA knows as much",
            lambda: value(scraped, f'sum(ma_run_handled_total{{setting="{KEY}"}})') == 12,
        )
    house.call("POST", f"settings/{KEY}/disable/", {"reason": "over"})


def _handled(result: str) -> str:
    return f'sum(kma_handlings_total{{setting="{KEY}",result="{result}"}})'
