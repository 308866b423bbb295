"""An installation has no test packages. Here every package that the requirements do not bring is hidden, and
the programs of the Procfile are imported: what they only find because of the tests shows up as missing."""

import json
import subprocess
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.config import REPOSITORY
from deploy.installing import python_packages
from tests import environment

pytestmark = pytest.mark.process

HIDE_AND_IMPORT = """
import importlib, json, sys
hidden, modules = json.loads(sys.argv[1])

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r} without the test packages", name=name)

sys.meta_path.insert(0, Hidden())
for module in modules:
    importlib.import_module(module)
"""

SITE = ["gunicorn.app.wsgiapp", "ma_site.wsgi", "ma_site.urls", "ma_site.celery", "celery.bin.celery"]
SITE += ["kombu.transport.redis", "supervisor.supervisord", "psycopg"]
KMA = ["celery.bin.celery", "kombu.transport.redis", "kma.app", "kma.handling.child", "kma.samples.orders"]


def brought_by(lines: tuple[str, ...]) -> set[str]:
    """The distributions that pip installs for these requirements: themselves and what they ask for."""
    found: set[tuple[str, str]] = set()
    asked = [Requirement(line) for line in lines]
    while asked:
        requirement = asked.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            needs = [Requirement(text) for text in metadata.requires(name) or ()]
            asked += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def hidden_by(lines: tuple[str, ...]) -> list[str]:
    kept = brought_by(lines)
    modules = metadata.packages_distributions().items()
    return sorted(
        module for module, names in modules if not kept & {canonicalize_name(name) for name in names}
    )


def imports(lines: tuple[str, ...], modules: list[str]) -> "subprocess.CompletedProcess[str]":
    environ = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(REPOSITORY),
        "DJANGO_SETTINGS_MODULE": "ma_site.settings",
    }
    return subprocess.run(
        [sys.executable, "-c", HIDE_AND_IMPORT, json.dumps([hidden_by(lines), modules])],
        env=environ | environment.VALUES,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_runs_on_what_the_first_start_installs() -> None:
    done = imports(python_packages.for_start(), SITE)
    assert done.returncode == 0, done.stderr


def test_a_kma_runs_on_its_own_short_list() -> None:
    done = imports(python_packages.requirements("requirements-kma.txt"), KMA)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", ["celery[redis]==5.7.0", "structlog==26.1.0"])
def test_a_package_that_is_left_out_is_noticed(missing: str) -> None:
    lines = python_packages.requirements("requirements-kma.txt")
    assert missing in lines
    shortened = tuple(line.replace("[redis]", "") if "[" in missing else line for line in lines)
    shortened = tuple(line for line in shortened if line != missing)
    assert "ModuleNotFoundError" in imports(shortened, KMA).stderr
