"""What a process of the site loads before its first request or task: seconds of every start, of every
process."""

import json
import subprocess
import sys
from typing import Any

import pytest

from deploy.config import REPOSITORY

pytestmark = pytest.mark.process


def loading(module: str) -> Any:
    """What a process says of itself that has loaded this module."""
    script = f"""
import json, sys, threading
import django
django.setup()
import {module}
from django.db import connection
ours = [name for name in sys.modules if not name.startswith(("django", "rest_framework"))]
loaded = [name for name in ours if name.endswith((".urls", ".admin.settings"))]
print(json.dumps({{
    "loaded": sorted(loaded),
    "connected": connection.connection is not None,
    "threads": [thread.name for thread in threading.enumerate()],
}}))
"""
    return json.loads(_printed(script))


def test_a_process_without_addresses_loads_no_page() -> None:
    assert loading("ma_site.celery")["loaded"] == []


def test_workers_can_share_what_their_master_has_loaded() -> None:
    found = loading("ma_site.wsgi")
    assert "agents.urls" in found["loaded"], "before the first request"
    assert not found["connected"], "several processes would write on one connection"
    assert found["threads"] == ["MainThread"], "a thread stays in the process that began it"


def test_checks_of_django_see_every_form_of_the_site() -> None:
    script = """
import django
django.setup()
from django.contrib import admin
from django.core.checks import run_checks
assert not run_checks(tags=["admin"])
print(len(admin.site._registry))
"""
    assert int(_printed(script)) >= 10


def _printed(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
