"""The remote command and the site as the Procfile serves it, over a socket."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import LaunchSetting
from console.audit.models import AuditEntry
from console.models import ApiToken
from deploy.config import REPOSITORY
from deploy.remote.site import Exit, site_at
from ma_site.api import every_command
from tests.web.real_site import Site, real_site
from tests.web.rows import make_alive

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


def ma(site: Site, token: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(REPOSITORY / "ma"), *words],
        env={"PATH": os.environ["PATH"], "MA_URL": site.url("/"), "MA_TOKEN": token},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_operator_works_from_another_machine(
    setting: LaunchSetting, operator: User, tmp_path: Path
) -> None:
    make_alive(*setting.pool.servers.all(), now=timezone.now())
    token = ApiToken.issue(operator, "remote", now=timezone.now())
    with real_site() as site:
        assert ma(site, token, "settings", "list").stdout.splitlines()[1].split()[0] == "orders"
        enabled = ma(site, token, "settings", "enable", "orders", "--json")
        assert (enabled.returncode, json.loads(enabled.stdout)["setting"]) == (0, "orders"), enabled.stderr
        again = ma(site, token, "settings", "run", "orders")
        assert again.returncode == Exit.REFUSED and again.stderr.startswith("ma: ")
        assert ma(site, token, "settings", "disable", "orders", "--reason", "Проверка").returncode == 0
        file = tmp_path / "settings.yaml"
        file.write_text(ma(site, token, "export").stdout.replace("breaker_m: 10", "breaker_m: 9"), "utf-8")
        assert ma(site, token, "plan", str(file)).returncode == Exit.CHANGES
        assert ma(site, token, "apply", str(file)).stdout.endswith("1 change made.\n")
        assert ma(site, token, "plan", str(file)).returncode == Exit.DONE
        assert "orders" in ma(site, token, "__complete", "settings", "enable", "o").stdout
        assert ma(site, "ma_none", "settings", "list").returncode == Exit.REFUSED
    assert ma(site, token, "settings", "list").returncode == Exit.AWAY
    setting.refresh_from_db()
    assert (setting.breaker_m, str(setting.disabled_reason)) == (9, "Проверка")
    done = AuditEntry.objects.filter(result="done").order_by("pk").values_list("action", "by_name")
    assert list(done) == [
        ("setting.enable", "operator"), ("setting.disable", "operator"), ("setting.change", "operator"),
    ]  # fmt: skip


def test_every_list_is_answered_over_a_socket(setting: LaunchSetting) -> None:
    root = User.objects.create_superuser("root", password=None)
    token = ApiToken.issue(root, "remote", now=timezone.now())
    lists = [each for each in every_command() if each["method"] == "GET" and "{" not in each["path"]]
    assert len(lists) > 40
    with real_site() as running:
        site, answers = site_at(running.url(""), token), dict[str, Any]()
        for each in lists:
            if each["answer"] != "file":
                answers[each["path"]] = site.asked("GET", each["path"])
    assert all(isinstance(answer, dict | list) for answer in answers.values())
