"""A refused page is one warning in the log of the web, an error of the MA has its traceback."""

import logging

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import LaunchSetting


def test_a_refused_page_is_one_line_without_a_traceback(
    outsider: User, client: Client, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    client.force_login(outsider)
    assert client.get("/settings/").status_code == 403

    (warned,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (warned.name, warned.exc_info) == ("django.request", None) and "/settings/" in warned.getMessage()
    assert "Traceback" not in caplog.text and "Traceback" not in capsys.readouterr().err


def test_an_error_keeps_its_traceback(
    operator: User,
    setting: LaunchSetting,
    client: Client,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_args: object, **_options: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("agents.pages.settings.operation_buttons", broken)
    client.force_login(operator)
    client.raise_request_exception = False
    assert client.get("/settings/orders/").status_code == 500
    assert "RuntimeError: broken" in caplog.text
