"""A name that an action does not know is refused: a misspelt reason is not lost, a misspelt filter hides
nothing."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.models import LaunchSetting, Server, StateChange
from alerts.models import NoticeTarget
from tests.web.launching import delayed, group_of
from tests.web.rows import api_client

ACTIONS = [
    *(
        f"settings/orders/{action}"
        for action in ("enable", "disable", "run", "stop", "resume", "stop-on", "start-on", "label")
    ),
    *(f"groups/night/{action}" for action in ("enable", "disable", "run", "stop", "move")),
    *(f"servers/srv-1/{action}" for action in ("cordon", "drain", "uncordon")),
    *(f"{scope}/{action}" for scope in ("site/1", "pools/{pool}") for action in ("freeze", "unfreeze")),
    "notice-targets/{target}/test",
    "notice-targets/{target}/renew-secret",
]


@pytest.fixture
def operating(operator: User, setting: LaunchSetting, server: Server) -> APIClient:
    group_of(delayed(setting.pool, "m-1"))
    return api_client(operator)


@pytest.mark.parametrize("address", ACTIONS)
@pytest.mark.parametrize("body", [{"reson": "typo"}, [], "text", 7])
def test_an_action_refuses_a_body_that_it_does_not_know(
    operating: APIClient, setting: LaunchSetting, address: str, body: Any
) -> None:
    target = NoticeTarget.objects.create(
        setting=setting, channel="webhook", address="http://127.0.0.1:1/hook"
    )
    told = operating.post(
        f"/api/v1/{address.format(target=target.pk, pool=setting.pool.name)}/", body, format="json"
    )

    assert told.status_code == 400, told.content
    if isinstance(body, dict):
        assert told.json()["where"] == "reson"
    assert not StateChange.objects.exists() and not target.notices.exists()


@pytest.mark.parametrize("word", ["x", "1", "yes"])
def test_a_filter_that_is_neither_true_nor_false_is_refused(operating: APIClient, word: str) -> None:
    told = operating.get(f"/api/v1/settings/?enabled={word}")

    assert (told.status_code, told.json()["where"]) == (400, "enabled")


@pytest.mark.parametrize(("query", "count"), [("true", 0), ("false", 2), ("False", 2), ("", 2)])
def test_a_filter_is_true_or_false(operating: APIClient, query: str, count: int) -> None:
    assert len(operating.get(f"/api/v1/settings/?enabled={query}").json()["results"]) == count
