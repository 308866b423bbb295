import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.config import REPOSITORY
from tests.costs import table

pytestmark = pytest.mark.process


def test_each_run_keeps_what_its_tests_cost_and_shows_the_slowest(tmp_path: Path) -> None:
    """Two runs: what the first one measured is still known after the second one."""
    for name in ("arguments_go_to_pytest_alone", "a_long_campaign_can_be_chosen"):
        test = f"tests/deploy/test_test_stages.py::test_{name}"
        answer = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test],
            cwd=REPOSITORY,
            env=os.environ | {"MA_TEST_CACHE": str(tmp_path), "MA_TEST_DATABASE": "sqlite"},
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, answer.stdout
        assert "the 1 slowest" in answer.stdout and name in answer.stdout

    ((database, tests, items, wall, cpu),) = table(tmp_path / "costs")
    assert (database, tests, items) == ("sqlite", "tests/deploy", 2)
    assert wall >= 0 and cpu >= 0
