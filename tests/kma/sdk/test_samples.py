"""The demo's agents, through the harness that their authors use."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from kma.samples import bench, orders, scripted, standalone
from kma.testing import Outcome, Result, as_json, run_agent, run_standalone

LINES = [{"sku": "LAMP-2", "quantity": 2, "price": 10.0}]


def order(kind: str, attempt: int = 1, parameters: dict[str, Any] | None = None, **fields: Any) -> Result:
    body = {"order": "A-1", "kind": kind, "customer": "C-1", "currency": "EUR", "lines": LINES, **fields}
    return run_agent(orders.Orders, as_json(body), attempt=attempt, parameters=parameters or {})


def script(step: Any, attempt: int = 1, **parameters: Any) -> Result:
    return run_agent(scripted.Scripted, as_json(step), attempt=attempt, parameters=parameters)


def test_an_order_is_booked_and_its_invoice_is_sent_and_filed() -> None:
    result = order("standard", parameters={"invoices": "demo.invoices"})
    assert result.ok
    (invoice,) = result.sent
    assert invoice.json() == {"order": "A-1", "customer": "C-1", "total": 20.0, "currency": "EUR"}
    assert run_agent(orders.Invoices, as_json(invoice.json())).ok
    assert run_agent(orders.Invoices, "{}").outcome is Outcome.INVALID


def test_each_kind_of_failure_of_the_demo_is_there() -> None:
    gift = order("gift", wrapping="velvet")
    assert gift.failure is not None and gift.failure.exception_type == "KeyError"
    assert gift.failure.place == "orders.py:wrapping_price"
    assert order("gift", wrapping="box").ok
    assert [order("return", attempt).outcome for attempt in (1, 2, 3)] == [
        Outcome.TEMPORARY,
        Outcome.TEMPORARY,
        Outcome.RETURNED,
    ]
    assert order("scan", pages=4).ok
    for body in ("no json", "[]", "{}", as_json({"order": "A", "kind": "odd", "lines": LINES})):
        assert run_agent(orders.Orders, body).outcome is Outcome.INVALID


def test_the_carrier_is_away_one_minute_in_three(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [orders.carrier_is_away(60.0 * minute) for minute in range(6)] == [False, True, False] * 2
    monkeypatch.setattr(orders, "carrier_is_away", lambda now: True)
    away = order("express")
    assert away.failure is not None and away.failure.exception_type == "ConnectionError"
    monkeypatch.setattr(orders, "carrier_is_away", lambda now: False)
    assert order("express").ok


def test_audit_and_noop_take_everything() -> None:
    for body in ("x", b"x", {"a": 1}, [1], None):
        assert run_agent(orders.audit, body).ok and run_agent(bench.noop, body).ok


def test_a_script_raises_what_it_names_and_only_on_the_first_deliveries() -> None:
    for name in ("KeyError", "SystemExit", "CarrierGone"):
        failed = script({"do": "raise", "type": name, "first": 2}, attempt=2)
        assert failed.failure is not None and failed.failure.exception_type.endswith(name)
    assert script({"do": "raise", "first": 2}, attempt=3).ok
    assert script({"do": "temporary"}).outcome is Outcome.TEMPORARY
    assert script([{"do": "ok"}, {"do": "invalid"}]).outcome is Outcome.INVALID


def test_a_script_sends() -> None:
    sent = script({"do": "send", "destination": "x", "count": 2, "body": "b"}).sent
    assert [(one.destination, one.message.body, one.message.properties["index"]) for one in sent] == [
        ("x", "b", 0),
        ("x", "b", 1),
    ]


@pytest.mark.parametrize(
    "step", [{"do": "fly"}, {}, 7, [{"do": "sleep", "seconds": "long"}], {"do": "ok", "first": "x"}]
)
def test_a_script_that_makes_no_sense_is_invalid(step: Any) -> None:
    assert script(step).outcome is Outcome.INVALID


def test_every_attempt_that_began_is_in_the_truth_file(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    script({"do": "raise", "note": "n"}, truth_file=str(path))
    script({"do": "ok"}, attempt=2, truth_file=str(path))
    run_agent(scripted.Scripted, "no json", parameters={"truth_file": str(path)})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["attempt"], line["redelivered"], line["note"]) for line in lines] == [
        (1, False, "n"),
        (2, True, None),
        (1, False, None),
    ]
    assert all(line["key"] == line["id"] and line["pid"] and line["at"] for line in lines)


def test_the_nightly_report_sends_one_of_each_day_and_can_be_stopped_between_two() -> None:
    days = {"from_day": "2026-11-01", "to_day": "2026-11-03", "reports": "demo.reports"}
    result = run_standalone(standalone.NightlyReport, parameters=days)
    assert result.ok and [sent.message.id for sent in result.sent] == [
        f"report-2026-11-0{n}" for n in (1, 2, 3)
    ]
    assert result.sent[0].json() == {
        "day": "2026-11-01",
        "total": standalone.sales_of(date(2026, 11, 1)),
        "currency": "EUR",
    }
    assert run_standalone("demo.nightly-report").ok, "yesterday, and nobody to tell"


def test_the_scripted_standalone_does_what_its_parameters_say(tmp_path: Path) -> None:
    truth = tmp_path / "truth"

    def done(script: Any, **more: Any) -> Result:
        return run_standalone(
            standalone.ScriptedStandalone, parameters={"script": script, "truth_file": str(truth)}, **more
        )

    assert done([{"do": "raise", "type": "KeyError", "first": 1}]).outcome is Outcome.RAISED
    assert done([{"do": "raise", "type": "KeyError", "first": 1}]).ok, "the second start"
    assert done({"do": "tick", "seconds": 0.3}, stop_after=5).ok
    assert done({"do": "wait", "seconds": 60}, stop_after=0.1).outcome is Outcome.RELEASED
    assert done({"do": "nonsense"}).outcome is Outcome.RAISED
    lines = [json.loads(line) for line in truth.read_text().splitlines()]
    assert [line["start"] for line in lines if line["note"] is None] == [1, 2, 3, 4, 5]
    assert all(line["boottime"] > 0 for line in lines)
