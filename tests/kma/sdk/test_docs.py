"""The code that a newcomer copies from the pages on agents is run as it stands there."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kma.sdk import registry
from kma.testing import ACKNOWLEDGEMENT, Action, as_json, run_agent

REPOSITORY = Path(__file__).resolve().parents[3]
PAGES = ("tutorials/first-agent.md", "how-to/standalone-agents.md", "how-to/answer-later.md")
BLOCK = re.compile(r"```python file=(\S+)\n(.*?)```", re.DOTALL)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    blocks = dict[str, str]()
    for page in PAGES:
        blocks |= dict(BLOCK.findall((REPOSITORY / "docs" / page).read_text(encoding="utf-8")))
    assert set(blocks) == {
        *("shop_agents.py", "test_shop_agents.py", "send_order.py"),
        *("shop_report.py", "test_shop_report.py", "shop_payments.py"),
    }
    for name, text in blocks.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.process
@pytest.mark.parametrize(("tests", "number"), [("test_shop_agents.py", 4), ("test_shop_report.py", 3)])
def test_the_agents_tests_pass_as_they_are_written(files: Path, tests: str, number: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", tests]
    done = subprocess.run(command, cwd=files, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert f"{number} passed" in done.stdout


@pytest.mark.process
def test_the_agent_is_offered_with_name_and_summary(files: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "kma.agent_discovery", "shop_agents", "shop_report"]
    done = subprocess.run(command, cwd=files, env=environment, capture_output=True, text=True, check=True)
    assert '"name": "shop.prices"' in done.stdout and "Prices an order and sends an invoice." in done.stdout
    assert '"name": "shop.report", "kind": "standalone"' in done.stdout


def test_the_agents_that_answer_later_do_as_the_page_says(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_AGENTS", {})
    monkeypatch.syspath_prepend(str(files))
    importlib.import_module("shop_payments")
    free = run_agent("shop.payments", as_json({"total": 0}), client=True)
    assert (free.answer, free.sent[0].destination) == (Action.COMMIT, "shop.paid")
    asked = run_agent("shop.payments", as_json({"total": 7}), client=True)
    assert (asked.answer, asked.sent[0].json()["answer"]) == (None, ACKNOWLEDGEMENT)
    word = run_agent("shop.bank-words", as_json({"answer": "an-id", "paid": False}))
    assert word.answers == (("an-id", Action.ROLLBACK),)


def test_the_publisher_at_least_compiles(files: Path) -> None:
    compile((files / "send_order.py").read_text(encoding="utf-8"), "send_order.py", "exec")
