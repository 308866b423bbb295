"""The dead man's switch: pinged once a minute while alerts are evaluated, and not when they are not."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from alerts import agents_hooks, deadman
from alerts.deadman import ping, works
from alerts.evaluation import LATE
from alerts.models import AlertEvaluation
from alerts.sources import every_kind
from ma_site import env, tasks
from tests.environment import VALUES
from tests.web.listeners import Hook, listening_hook
from tests.web.rows import NOW

pytestmark = pytest.mark.django_db(transaction=True)
SECOND = timedelta(seconds=1)


@pytest.fixture
def hook(settings: Any) -> Iterator[Hook]:
    with listening_hook() as hook:
        settings.MA_DEADMAN_URL, settings.MA_DEADMAN_METHOD = hook.url + "path-secret", "GET"
        yield hook


def evaluated(at: datetime) -> None:
    AlertEvaluation.objects.all().delete()
    AlertEvaluation.objects.bulk_create(AlertEvaluation(kind=kind.name, at=at) for kind in every_kind())


@pytest.mark.parametrize(
    ("at", "well"), [([NOW, NOW - LATE], True), ([NOW, NOW - LATE - SECOND], False), ([NOW, None], False)]
)
def test_evaluation_works_while_every_kind_was_evaluated_lately(
    at: list[datetime | None], well: bool
) -> None:
    assert works(at, NOW) is well


def test_it_is_pinged_at_most_once_a_minute(hook: Hook) -> None:
    evaluated(NOW)
    sent = [ping(NOW + second * SECOND) for second in (0, 10, 50, 59, 60, 70)]
    assert sent == [True, False, False, False, True, False]
    assert [path for path, _headers, _body in hook.heard] == ["/told/path-secret"] * 2


def test_it_may_be_asked_with_post(hook: Hook, settings: Any) -> None:
    settings.MA_DEADMAN_METHOD = "POST"
    evaluated(NOW)
    assert ping(NOW)
    assert hook.heard[0][2] == b""


def test_a_kind_that_nobody_evaluates_stops_the_pings(hook: Hook) -> None:
    evaluated(NOW)
    AlertEvaluation.objects.filter(kind="server_silent").update(at=NOW - timedelta(minutes=3))
    assert not ping(NOW)
    AlertEvaluation.objects.filter(kind="server_silent").delete()
    assert not ping(NOW)
    assert hook.heard == []


def test_an_address_that_refuses_or_is_away_breaks_nothing_and_its_path_is_not_logged(
    hook: Hook, settings: Any, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    evaluated(NOW + timedelta(minutes=1))
    hook.answers = [500, 302]
    assert not ping(NOW)
    assert not ping(NOW + timedelta(minutes=1))
    assert len(hook.heard) == 2, "a redirect is not followed"
    settings.MA_DEADMAN_URL = "http://127.0.0.1:1/path-secret"
    assert not ping(NOW + timedelta(minutes=2))
    assert "dead man's switch not reached" in caplog.text
    assert "path-secret" not in caplog.text + "".join(capsys.readouterr())


def test_without_an_address_nothing_is_asked(hook: Hook, settings: Any) -> None:
    settings.MA_DEADMAN_URL = ""
    evaluated(NOW)
    assert not ping(NOW)


def test_the_worker_pings_and_so_does_who_stands_in_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pinged: list[str] = []
    for module in (tasks, agents_hooks):
        monkeypatch.setattr(module, "evaluate_all", lambda now: pinged.append("evaluated"))
    monkeypatch.setattr(agents_hooks, "send_due", lambda now: None)
    monkeypatch.setattr(deadman, "ping", lambda now: pinged.append("pinged"))
    tasks.evaluate_task()
    agents_hooks._look(NOW)
    assert pinged == ["evaluated", "pinged"] * 2


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("MA_DEADMAN_URL", "ftp://switch.example.org/x", "must be an address"),
        ("MA_DEADMAN_URL", "https:///x", "must be an address"),
        ("MA_DEADMAN_METHOD", "PUT", "must be GET or POST"),
    ],
)
def test_a_wrong_address_or_method_is_refused_at_the_start(name: str, value: str, reason: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"{name}.*{reason}"):
        env.read(VALUES | {name: value})


def test_it_is_read_from_the_environment_and_never_shown() -> None:
    found = env.read(
        VALUES | {"MA_DEADMAN_URL": "https://switch.example.org/x/", "MA_DEADMAN_METHOD": "post"}
    )
    assert (found.deadman_url, found.deadman_method) == ("https://switch.example.org/x/", "POST")
    assert "switch" not in repr(found)
    assert (env.read(VALUES).deadman_url, env.read(VALUES).deadman_method) == ("", "GET")
