"""MA_SCHEMA_SIGNED_IN: the description of the REST interface is for those who are signed in. Settings of a
process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import migrated
from tests.web.real_site import ROOT

pytestmark = pytest.mark.process

ASK = """
import django, json
django.setup()
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from console.models import ApiToken
person = User.objects.create_user("viewer", is_staff=True)
signed_in = Client()
signed_in.force_login(person)
token = {"HTTP_AUTHORIZATION": "Bearer " + ApiToken.issue(person, "x", now=timezone.now())}
paths = ("/api/v1/schema/", "/api/v1/docs/", "/api/v1/commands/")
print(json.dumps([
    [Client().get(path).status_code, signed_in.get(path).status_code, Client().get(path, **token).status_code]
    for path in paths
]))
"""


@pytest.mark.parametrize(("value", "stranger"), [("0", 200), ("1", 401)])
def test_a_stranger_reads_the_description_unless_it_is_for_those_who_are_signed_in(
    tmp_path: Path, value: str, stranger: int
) -> None:
    environ = {
        **os.environ,
        "MA_SCHEMA_SIGNED_IN": value,
        "MA_DATABASE_URL": migrated.make_file(tmp_path / "site.sqlite3"),
        "DJANGO_SETTINGS_MODULE": "tests.web.real_site_settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [[stranger, 200, 200]] * 3
