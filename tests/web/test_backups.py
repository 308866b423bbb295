"""The last good backup: noted, shown on Health, told by doctor and by an alert where somebody wants that."""

import json
from datetime import datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents.site.backups import last_backup
from alerts.sources.components import BACKUP
from console.audit.models import AuditEntry
from ma_site.checks.work import check_backup
from ma_site.pages.parts import DEGRADED, OK, backup_parts

pytestmark = pytest.mark.django_db


def note(made_at: datetime, *, left_out: tuple[str, ...] = ("messages",)) -> None:
    facts = {
        "made_at": f"{made_at:%Y-%m-%dT%H:%M:%SZ}",
        "place": "/srv/ma-backup/ma-backup-20260101T020000Z",
        "size": 7,
        "left_out": left_out,
        "stopped": None,
    }
    call_command("record_backup", json.dumps(facts))


@pytest.fixture
def daily(settings: object) -> None:
    settings.MA_BACKUP_HOURS = 24  # type: ignore[attr-defined]


def values(now: datetime) -> list[float | None]:
    return [seen.value for seen in BACKUP.observe(now, frozenset())]


def test_where_nobody_makes_or_wants_one_nothing_is_said() -> None:
    now = timezone.now()
    assert (values(now), backup_parts(now), list(check_backup(now))) == ([], [], [])


@pytest.mark.usefixtures("daily")
def test_who_wants_one_hears_that_there_is_none() -> None:
    now = timezone.now()
    (seen,) = BACKUP.observe(now, frozenset())
    assert seen.value == BACKUP.limits.upper
    assert BACKUP.says(seen.facts, 1.0) == "No backup of this installation has been made yet."
    (part,) = backup_parts(now)
    (finding,) = check_backup(now)
    assert part.state == DEGRADED and not finding.ok


@pytest.mark.usefixtures("daily")
@pytest.mark.parametrize(("hours", "old"), [(23, False), (25, True)])
def test_its_age_counts_from_when_it_was_made(hours: int, old: bool) -> None:
    now = timezone.now()
    note(now - timedelta(hours=hours))
    (part,) = backup_parts(now)
    (finding,) = check_backup(now)
    (value,) = values(now)
    assert value is not None and (value >= BACKUP.limits.upper) is old
    assert part.state == (DEGRADED if old else OK) and "messages not included" in str(part.says)
    assert finding.ok is not old
    (seen,) = BACKUP.observe(now, frozenset())
    assert "The last good backup was made on" in BACKUP.says(seen.facts, value)


def test_without_a_limit_the_last_one_is_shown_and_never_old() -> None:
    now = timezone.now()
    note(now - timedelta(days=400), left_out=())
    (part,) = backup_parts(now)
    assert part.state == OK and "messages included" in str(part.says)
    assert values(now) == []


def test_each_is_an_entry_of_the_audit_and_the_newest_is_the_last_one() -> None:
    now = timezone.now().replace(microsecond=0)
    note(now)
    note(now - timedelta(days=1))
    assert AuditEntry.objects.filter(action="backup").count() == 2
    assert last_backup().made_at == now


def test_what_is_no_fact_of_a_backup_is_refused() -> None:
    for bad in ("{}", "[1]", "x", '{"made_at": "yesterday"}'):
        with pytest.raises(CommandError, match="no facts of a backup"):
            call_command("record_backup", bad)
    assert last_backup().made_at is None
