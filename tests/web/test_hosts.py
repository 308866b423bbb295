"""Two hosts of one site that were told different things: doctor names what, and shows no value."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from agents.models import ComponentState
from console.jobs import detached
from contract import __version__
from ma_site import hosts
from ma_site.checks.host import check_hosts


@pytest.fixture
def other(db: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Notes another host that was told `changes` and runs `version`."""

    def note(version: str = __version__, **changes: Any) -> None:
        with monkeypatch.context() as there:
            there.setattr(detached, "host", lambda: "host-b")
            there.setattr(hosts, "__version__", version)
            there.setattr(settings, "ENVIRONMENT", replace(settings.ENVIRONMENT, **changes))
            hosts.note_host(timezone.now())

    return note


def said(minutes: int = 0) -> list[tuple[bool, str]]:
    now = timezone.now() + timedelta(minutes=minutes)
    return [(finding.ok, finding.detail) for finding in check_hosts(now)]


def test_one_host_alone_is_not_spoken_of(db: None) -> None:
    hosts.note_host(timezone.now())
    assert said() == []


def test_two_that_were_told_the_same_are_fine(other: Any) -> None:
    other()
    assert said() == [(True, "the same settings as host-b")]
    assert said(minutes=11) == [], "it was not seen for long"


def test_what_differs_is_named_without_its_value(other: Any) -> None:
    other(archive_url="file:///elsewhere", retention_days=7)
    assert said() == [(False, "host-b has other values than this host: MA_ARCHIVE_URL, MA_RETENTION_DAYS")]


def test_what_a_host_has_for_itself_may_differ(other: Any) -> None:
    other(log_level="DEBUG", redis_url="redis://:x@127.0.0.1:2/0", broker_password="another")
    assert [ok for ok, _says in said()] == [True]


def test_another_key_is_one_finding_and_its_digest_tells_nothing(other: Any) -> None:
    other(secret_key="another-key-another-key-another-key-another-key")
    assert said() == [(False, "host-b has other values than this host: MA_SECRET_KEY")]
    kept = str(ComponentState.objects.get(name="host:host-b").details)
    assert "another-key" not in kept


def test_another_version_is_named(other: Any) -> None:
    other(version="0.1.0")
    assert said() == [(False, f"host-b runs version 0.1.0, this host {__version__}")]
