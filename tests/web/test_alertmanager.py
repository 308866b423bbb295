"""Debian's Alertmanager takes our alerts: open, kept open, resolved."""

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from django.contrib.auth.models import User

from agents.models import LaunchSetting, Pool, Server
from agents.settings.enable import enable_setting
from alerts import operations
from alerts.models import Alert, Notice, NoticeState, NoticeTarget
from alerts.notices.channels.incidents import REPEATED_EVERY
from alerts.notices.delivery import send_due, send_test
from alerts.rules import Thresholds
from deploy.services.ports import free_ports
from tests.web.alerts import heat
from tests.web.rows import make_alive
from tests.web.test_breaker_trips import give_up, started
from tests.web.test_notices import target_of

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = Thresholds(80.0, 60.0)


@dataclass
class Alertmanager:
    url: str

    def alerts(self) -> list[Any]:
        with urlopen(f"{self.url}/api/v2/alerts?active=true", timeout=5) as answer:
            return list(json.load(answer))

    def named(self, name: str) -> list[Any]:
        return [alert for alert in self.alerts() if alert["labels"]["alertname"] == name]

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, ConnectionError):
            return False


@pytest.fixture(scope="module")
def alertmanager(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    folder: Path = tmp_path_factory.mktemp("alertmanager")
    config = folder / "alertmanager.yml"
    config.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    (port,) = free_ports(1)
    command = [
        "prometheus-alertmanager", f"--config.file={config}", f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        found = Alertmanager(f"http://127.0.0.1:{port}")
        deadline = time.monotonic() + 30
        while not found.is_ready():
            assert time.monotonic() < deadline and process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield found
        process.terminate()


@pytest.fixture
def target(setting: LaunchSetting, alertmanager: Alertmanager) -> NoticeTarget:
    return target_of(setting.pool, alertmanager.url, "alertmanager")


def test_an_alert_is_open_kept_open_and_resolved(
    alertmanager: Alertmanager, target: NoticeTarget, pool: Pool, operator: User, settings: Any
) -> None:
    settings.MA_BASE_URL = "https://ma.example.org"
    now = datetime.now(UTC)
    with heat(pool, AT_ONCE) as oven:
        oven.values["oven"] = 90.0
        oven.look(now)
        assert send_due(now) == 1

        (found,) = alertmanager.named("ma_heat")
        assert found["labels"] == {
            "alertname": "ma_heat", "severity": "critical", "subject": "oven", "pool": pool.name,
            "ma": "ma.example.org",
        }  # fmt: skip
        assert "90 degrees hot" in found["annotations"]["summary"]
        ends = datetime.fromisoformat(found["endsAt"])
        notice = Notice.objects.get()
        assert (notice.state, found["status"]["state"]) == (NoticeState.ACTIVE, "active")

        assert send_due(now + REPEATED_EVERY / 2) == 0
        assert send_due(now + REPEATED_EVERY) == 1
        (found,) = alertmanager.named("ma_heat")
        assert datetime.fromisoformat(found["endsAt"]) - ends == REPEATED_EVERY

        # Its pools may be others by now: it is resolved under the labels that opened it.
        alert = Alert.objects.get()
        alert.pools.add(Pool.objects.create(name="another"))
        operations.close(alert, operator, "known", datetime.now(UTC))
        assert send_due(datetime.now(UTC)) == 1

    assert alertmanager.named("ma_heat") == []
    assert set(Notice.objects.values_list("state", flat=True)) == {NoticeState.SENT}
    assert send_due(now + timedelta(days=1)) == 0


def test_a_trip_is_open_until_the_setting_is_enabled(
    alertmanager: Alertmanager, target: NoticeTarget, setting: LaunchSetting, server: Server,
    second_server: Server,
) -> None:  # fmt: skip
    now = datetime.now(UTC)
    make_alive(server, second_server, now=now)
    (run,) = started(setting).values()
    give_up(run)
    send_due(datetime.now(UTC))
    (found,) = alertmanager.named("ma_breaker_trip")
    assert found["labels"]["setting"] == "orders"

    enable_setting(setting, None, datetime.now(UTC))
    send_due(datetime.now(UTC))

    assert alertmanager.named("ma_breaker_trip") == []
    assert set(Notice.objects.values_list("state", flat=True)) == {NoticeState.SENT}


def test_a_test_ends_by_itself(alertmanager: Alertmanager, target: NoticeTarget) -> None:
    sent = send_test(target, None, datetime.now(UTC))

    (found,) = alertmanager.named("ma_test")
    lasts = datetime.fromisoformat(found["endsAt"]) - datetime.now(UTC)
    assert (sent.state, sent.problem) == (NoticeState.SENT, "")
    assert timedelta() < lasts <= timedelta(minutes=1)


def test_what_it_refuses_is_a_problem(alertmanager: Alertmanager, setting: LaunchSetting) -> None:
    target = target_of(setting, alertmanager.url + "/nowhere", "alertmanager")

    assert send_test(target, None, datetime.now(UTC)).problem.startswith("answered 4")
