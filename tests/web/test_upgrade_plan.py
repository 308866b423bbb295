"""What ./ma upgrade asks of a database that an older version has migrated."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from agents.models import LaunchSetting
from tests.web.factories import World

pytestmark = pytest.mark.django_db


def plan() -> dict[str, Any]:
    said = StringIO()
    call_command("upgrade_plan", stdout=said)
    return dict(json.loads(said.getvalue()))


def forget(app: str, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = %s AND name = %s", [app, name])


def test_of_today_nothing_is_missing() -> None:
    found = plan()
    assert (found["steps"], found["jobs"]) == ([], 0)
    assert "agents.0001_initial" in found["applied"]


def test_what_is_missing_is_named_with_the_rows_of_its_tables(world: World) -> None:
    forget("agents", "0007_labels")
    found = plan()
    assert {step["migration"] for step in found["steps"]} == {"agents.0007_labels"}
    rows = {step["rows"] for step in found["steps"] if step["table"] == "agents_launchsetting"}
    assert rows == {LaunchSetting.objects.count()} and 0 not in rows
    assert all(step["reversible"] for step in found["steps"])
    assert "agents.0007_labels" not in found["applied"]
