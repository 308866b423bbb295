"""The rules of the house that no tool of its own checks."""

import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.architecture import small_modules
from tests.architecture.figures import SHORT

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = (
    "agents",
    "alerts",
    "broker",
    "console",
    "contract",
    "deploy",
    "dlq",
    "exposition",
    "failures",
    "insights",
    "kma",
    "ma_site",
    "metrics",
    "pipeline",
    "retention",
)
NAMELESS = {"utils", "helpers", "common", "base", "misc", "manager2"}

# Each program reads its environment in one place; these only pass it there, or name the settings for Django.
READS_ENVIRONMENT = {
    "deploy",
    "console/jobs/crash.py",
    "console/jobs/detached.py",
    "exposition/notify.py",
    "kma/__main__.py",
    "kma/host/config.py",
    "kma/children/process.py",
    # Runs where user code runs, which knows nothing of the KMA's Config.
    "kma/samples/limits.py",
    "ma_site/celery.py",
    "ma_site/management/commands/publish_demo_orders.py",
    "ma_site/relocation.py",
    "ma_site/settings.py",
    "ma_site/wsgi.py",
    "pipeline/application.py",
    "pipeline/crash.py",
}


def sources() -> list[Path]:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return [path for path in files if "migrations" not in path.parts]


def test_every_change_of_a_model_has_its_migration(db: None) -> None:
    try:
        call_command("makemigrations", "--check", "--dry-run", stdout=StringIO())
    except SystemExit:
        pytest.fail("manage.py makemigrations finds changes")


def test_files_have_a_name() -> None:
    nameless = [str(path.relative_to(ROOT)) for path in sources() if path.stem in NAMELESS]
    assert nameless == []


def test_a_small_module_says_why_it_is_one() -> None:
    small = {
        str(path.relative_to(ROOT))
        for path in sources()
        if path.name != "__init__.py" and len(path.read_text("utf-8").splitlines()) < SHORT
    }
    unsaid = {
        path
        for path in small.difference(small_modules.REASONS)
        if Path(path).stem not in small_modules.NAMES
        and not any(f"/{folder}/" in path for folder in small_modules.FOLDERS)
    }
    assert unsaid == set(), "merge it with its neighbour, or say in small_modules.py why it is one"
    large = {path for path in small_modules.REASONS if path not in small and (ROOT / path).exists()}
    assert large == set(), "they need no reason any more"


def test_the_environment_is_read_in_one_place_per_program() -> None:
    reading = {
        str(path.relative_to(ROOT))
        for path in sources()
        if re.search(r"os\.(environ|getenv)", path.read_text("utf-8"))
    }

    assert {
        path for path in reading if path not in READS_ENVIRONMENT and not path.startswith("deploy/")
    } == set()


def test_templates_hold_no_inline_script_or_style_and_nothing_from_elsewhere() -> None:
    wrong = []
    for path in (ROOT / "templates").rglob("*.html"):
        text = path.read_text("utf-8")
        if re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)", text) or re.search(
            r"(src|href)=\"(https?:)?//", text
        ):
            wrong.append(str(path.relative_to(ROOT)))

    assert wrong == []
