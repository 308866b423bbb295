"""The REST of servers' duty: cordon, drain, uncordon."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Server
from tests.web.rows import api_client, make_alive


@pytest.mark.parametrize(("action", "duty"), [("cordon", "cordoned"), ("drain", "draining")])
def test_a_server_leaves_service_with_a_reason_and_an_end_and_comes_back(
    operator: User, server: Server, action: str, duty: str
) -> None:
    client, until = api_client(operator), timezone.now() + timedelta(hours=2)
    told = client.post(
        f"/api/v1/servers/srv-1/{action}/", {"reason": "disk", "until": until.isoformat()}
    ).json()
    assert (told["duty"], told["duty_reason"], told["duty_by"]) == (duty, "disk", "operator") and told[
        "duty_until"
    ]

    back = client.post("/api/v1/servers/srv-1/uncordon/").json()
    assert (back["duty"], back["duty_reason"], back["duty_by"], back["duty_until"]) == (
        "active",
        "",
        None,
        None,
    )


@pytest.mark.parametrize("body", [{"until": "soon"}, {"reason": "x" * 2001}])
def test_a_wrong_field_is_named(operator: User, server: Server, body: dict[str, Any]) -> None:
    answer = api_client(operator).post("/api/v1/servers/srv-1/cordon/", body)
    assert (answer.status_code, answer.json()["where"]) == (400, next(iter(body)))


def test_an_end_that_is_past_is_refused(operator: User, server: Server) -> None:
    past = (timezone.now() - timedelta(hours=1)).isoformat()
    answer = api_client(operator).post("/api/v1/servers/srv-1/drain/", {"until": past})
    assert (answer.status_code, answer.json()["error"]) == (409, "until_is_past")


@pytest.mark.parametrize("action", ["cordon", "drain", "uncordon"])
def test_only_operators_change_the_duty(viewer: User, outsider: User, server: Server, action: str) -> None:
    for who in (viewer, outsider):
        assert api_client(who).post(f"/api/v1/servers/srv-1/{action}/").status_code == 403
    assert Server.objects.get().duty == "active"


def test_a_server_that_is_gone_is_removed_over_rest_by_who_may(
    server: Server, viewer: User, outsider: User
) -> None:
    chief, url = api_client(User.objects.create_superuser("chief")), "/api/v1/servers/srv-1/"
    assert [api_client(each).delete(url).status_code for each in (viewer, outsider)] == [403, 403]
    make_alive(server, now=timezone.now())
    alive = chief.delete(url)
    assert (alive.status_code, alive.json()["error"]) == (409, "alive")
    Server.objects.update(last_seen_at=timezone.now() - timedelta(days=1))
    assert (chief.delete(url).status_code, chief.delete(url).status_code) == (204, 404)
    assert not Server.objects.exists()
