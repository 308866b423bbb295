"""The demo's month that never was: Insights may show it, nothing else counts it, and it goes at one
command."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from agents.models import Activation, LaunchSetting, Pool
from alerts.evaluation import evaluate_all
from alerts.models import Alert
from contract.names import HISTORY_KEY
from failures.error_groups.rollup import fold_all
from failures.models import FailureDelta, FailureProtocol, Fingerprint, FingerprintHour, RecoveredMessage
from insights.models import ArchiveBlock, Recomputation
from ma_site.demo import HISTORY_DAYS, HISTORY_SERVERS, make_history, remove_history
from retention.preview import preview

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool() -> Pool:
    pool = Pool.objects.create(name="demo")
    assert make_history(pool, timezone.now())
    return pool


def test_it_is_a_month_of_one_disabled_setting(pool: Pool) -> None:
    setting = LaunchSetting.objects.get()
    assert (setting.key, setting.enabled, setting.takes_messages) == (HISTORY_KEY, False, False)
    assert "--remove" in setting.description and "Generated demo data" in setting.description
    rows = FailureProtocol.objects.all()
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    assert 400 < rows.count() < 3000
    assert len(set(rows.values_list("occurred_at__date", flat=True))) == HISTORY_DAYS
    assert all(today - timedelta(days=HISTORY_DAYS) <= row.received_at < today for row in rows)
    assert set(rows.values_list("server_name", flat=True)) == set(HISTORY_SERVERS)
    assert RecoveredMessage.objects.count() == rows.filter(temporary=True).count()


def test_it_counts_nowhere_and_raises_no_alert(pool: Pool) -> None:
    fold_all(timezone.now())
    assert not FailureDelta.objects.exists()
    assert not Fingerprint.objects.exists()
    assert not FingerprintHour.objects.exists()
    evaluate_all(timezone.now())
    assert not Alert.objects.filter(subject__contains=HISTORY_KEY).exists()
    later = timezone.now() + timedelta(days=300)
    assert all(each.going == 0 for key, parts in preview(later) for each in parts if key == HISTORY_KEY)


def test_pages_show_it_as_what_it_is(pool: Pool) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    shown = client.get(f"/settings/{HISTORY_KEY}/").content.decode()
    assert "Generated demo data" in shown
    protocol = FailureProtocol.objects.first()
    assert protocol is not None
    assert "(demo data)" in client.get(f"/protocols/{protocol.pk}/").content.decode()


def test_a_second_time_nothing_is_made(pool: Pool) -> None:
    before = FailureProtocol.objects.count()
    assert not make_history(pool, timezone.now())
    assert FailureProtocol.objects.count() == before


def test_one_command_takes_it_away(pool: Pool) -> None:
    said = StringIO()
    call_command("demo_history", "--remove", stdout=said)
    assert "removed" in said.getvalue()
    for model in (FailureProtocol, RecoveredMessage, Activation, LaunchSetting, Recomputation):
        assert not model.objects.exists()
    assert not remove_history()


def test_what_was_archived_of_it_is_computed_no_more(pool: Pool) -> None:
    now = timezone.now()
    ArchiveBlock.objects.create(
        kind="protocols", number=1, day=timezone.now().date(), first=now - timedelta(days=1), last=now
    )
    assert remove_history()
    assert Recomputation.objects.count() == 1
