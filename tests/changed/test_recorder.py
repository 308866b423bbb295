"""A session that is recorded, of two tests of this repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.config import REPOSITORY
from tests.changed import branches
from tests.changed.changes import Change
from tests.changed.execution_map import read

pytestmark = pytest.mark.process

PLUGINS = ("-p", "no:cacheprovider", "-p", "no:costs", "-p", "tests.changed.recorder", "-p", "tests.conftest")
RENDERING = """
import pytest
from django.template.loader import render_to_string
from contract import typed

@pytest.mark.parametrize("n", range(2))
def test_it_renders(n):
    render_to_string("ma/icons.html")

def test_it_cuts():
    typed.storable("text")
    exec(compile("made_up = 1 if typed else 0", "nowhere.py", "exec"))

def test_that_is_not_chosen():
    typed.storable("text")
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_functions_and_templates_are_recorded_of_each_test(tmp_path: Path, workers: tuple[str, ...]) -> None:
    """A template of a cached loader too; and xdist's workers write into one map."""
    file = tmp_path / "test_both.py"
    file.write_text(RENDERING)
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGINS, "-c", "pyproject.toml", *workers, "-k", "it", str(file)],
        cwd=REPOSITORY,
        env=os.environ | {"MA_TEST_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr

    scratch = tmp_path / "map.new"
    page = {name.partition("::")[2] for name in read(scratch, [Change("templates/ma/icons.html")]).touching}
    rule = read(scratch, [Change("contract/typed.py", {"storable": 0})])
    assert page == {"test_it_renders[0]", "test_it_renders[1]"}
    assert {name.partition("::")[2] for name in rule.touching} == {"test_it_cuts"}
    assert rule.tests.total() == 3 and list(scratch.glob(f"{branches.PART}*"))
