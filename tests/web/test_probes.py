"""/livez and /readyz: one word, to anybody, under any name."""

from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from ma_site.requests.probes import Probes

ANYBODY = {"HTTP_HOST": "10.0.0.7:8000"}


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_a_site_that_works_says_so_in_one_word(db: None, client: Client, path: str) -> None:
    answer = client.get(path, **ANYBODY)  # type: ignore[arg-type]
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert answer["Content-Type"].startswith("text/plain") and answer["Cache-Control"] == "no-store"
    assert "Content-Security-Policy" in answer
    assert client.head(path, **ANYBODY).status_code == 200  # type: ignore[arg-type]
    assert client.post(path, **ANYBODY).status_code == 405  # type: ignore[arg-type]


def test_it_lives_without_its_database_and_is_not_ready(client: Client) -> None:
    with mock.patch.object(connection, "cursor", side_effect=OperationalError("gone: secret")):
        assert client.get("/livez").status_code == 200
        answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"unavailable\n")


def test_it_is_not_ready_before_its_migrations_are_applied(db: None, rf: Any) -> None:
    probes = Probes(mock.Mock())
    row = MigrationRecorder.Migration.objects.filter(app="alerts").latest("pk")
    row.delete()
    assert probes(rf.get("/readyz")).status_code == 503
    MigrationRecorder(connection).record_applied("alerts", row.name)
    assert probes(rf.get("/readyz")).status_code == 200
    with mock.patch("ma_site.requests.probes.MigrationExecutor") as looked:
        assert probes(rf.get("/readyz")).status_code == 200
    assert not looked.called


def test_other_addresses_go_on(rf: Any) -> None:
    rest = mock.Mock()
    assert Probes(rest)(rf.get("/livez/")) is rest.return_value
