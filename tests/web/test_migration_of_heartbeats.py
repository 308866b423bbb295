"""One table held heartbeats of processes, locks, evaluations of alerts, and since when the site hears its
servers: each finds its own, and back. Locks begin free."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from agents.models import AlertEvaluation, SiteIdentity
from console.jobs.locks import NamedLock, lock
from console.processes import ProcessHeartbeat, last_heartbeat, record_heartbeat
from tests.web.rows import NOW

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

BEFORE, AFTER = ("console", "0002_tokens"), ("agents", "0040_meanings_of_process_beats")
MINUTE = timedelta(minutes=1)


def test_each_row_finds_the_table_of_its_meaning(migrate: Callable[[str, str], object]) -> None:
    SiteIdentity.objects.update_or_create(pk=1, defaults={"hearing_since": NOW - 5 * MINUTE})
    site = SiteIdentity.objects.get().uuid
    record_heartbeat("beat", NOW)
    record_heartbeat("feed", NOW - MINUTE)
    AlertEvaluation.objects.create(kind="server_silent", at=NOW - 2 * MINUTE)

    migrate(*BEFORE)
    ContentType.objects.create(app_label="agents", model="processbeat")
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM agents_processbeat ORDER BY name")
        assert [name for (name,) in cursor.fetchall()] == ["alerts:server_silent", "beat", "feed", "hearing"]
        for name in ("doctor", "lease:alerts", "once:alerts"):
            cursor.execute(
                "INSERT INTO agents_processbeat (name, at) VALUES (%s, '2026-03-01 12:00:00+00:00')", [name]
            )

    migrate(*AFTER)
    assert list(ProcessHeartbeat.objects.values_list("process", "at")) == [
        ("beat", NOW),
        ("feed", NOW - MINUTE),
    ]
    assert last_heartbeat("doctor") is None and not NamedLock.objects.exists()
    with lock("alerts", MINUTE) as free:
        assert free
    assert list(AlertEvaluation.objects.values_list("kind", "at")) == [("server_silent", NOW - 2 * MINUTE)]
    assert list(SiteIdentity.objects.values_list("uuid", "hearing_since")) == [(site, NOW - 5 * MINUTE)]
    assert "agents_processbeat" not in connection.introspection.table_names()
    assert not ContentType.objects.filter(app_label="agents", model="processbeat").exists()
