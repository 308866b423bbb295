"""The REST of launch settings, places and activations: what it does, who may, and how it refuses."""

import gzip
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.models import Destination, LaunchSetting, Pool, ProvisionState, Server
from agents.servers import admission
from tests.web.rows import NOW, api_client, heartbeat_json, make_alive, make_setting

WISH = {
    "key": "exports",
    "agent": "demo.orders",
    "pool": "demo",
    "destination": "demo.orders",
    "spread": "MANY",
}


@pytest.fixture
def operating(operator: User) -> APIClient:
    return api_client(operator)


@pytest.fixture
def destination(db: None) -> Destination:
    return Destination.objects.create(name="demo.orders")


# -- settings ------------------------------------------------------------------------------------------------


def test_a_setting_is_created_with_its_wish_for_the_broker(
    operating: APIClient, pool: Pool, destination: Destination
) -> None:
    answer = operating.post("/api/v1/settings/", WISH)

    assert answer.status_code == 201
    assert (answer.json()["provision_state"], answer.json()["enabled"], answer.json()["concurrency"]) == (
        "pending",
        False,
        1,
    )
    assert LaunchSetting.objects.get().wanted_hash


def test_a_setting_is_changed_by_patch_and_keeps_its_machine_facts(
    operating: APIClient, setting: LaunchSetting
) -> None:
    answer = operating.patch("/api/v1/settings/orders/", {"concurrency": 8, "parameters": {"a": [1]}})

    assert answer.status_code == 200
    setting.refresh_from_db()
    assert (setting.concurrency, setting.parameters, setting.provision_state) == (8, {"a": [1]}, "ready")


def test_a_change_that_the_broker_must_follow_is_pending_again(
    operating: APIClient, setting: LaunchSetting
) -> None:
    assert (
        operating.patch("/api/v1/settings/orders/", {"spread": "MANY"}).json()["provision_state"] == "pending"
    )


def test_a_new_policy_makes_every_setting_of_the_destination_pending(
    operating: APIClient, pool: Pool
) -> None:
    make_setting(pool, "first")
    make_setting(pool, "second")
    make_setting(pool, "other", address="demo.other")
    assert operating.patch("/api/v1/destinations/demo.orders/", {"max_attempts": 3}).status_code == 200

    states = dict(LaunchSetting.objects.values_list("key", "provision_state"))
    assert states == {"first": "pending", "second": "pending", "other": "ready"}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"key": "feed"}, "key"),
        ({"key": "Orders"}, "key"),
        ({"key": "o"}, "key"),
        ({"key": "a" * 62}, "key"),
        ({"pool": "nowhere"}, "pool"),
        ({"destination": "nowhere"}, "destination"),
        ({"spread": "SOME"}, "spread"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": "many"}, "concurrency"),
        ({"parameters": [1]}, "parameters"),
        ({"parameters": {"a": "\0"}}, "parameters"),
        ({"masked_properties": "card"}, "masked_properties"),
        ({"agent": "a\0b"}, "agent"),
        ({"enabled": True}, "enabled"),
        ({"speed": 1}, "speed"),
    ],
)
def test_a_wrong_field_is_named(
    operating: APIClient, pool: Pool, destination: Destination, change: dict[str, Any], where: str
) -> None:
    answer = operating.post("/api/v1/settings/", WISH | change)

    assert answer.status_code == 400, answer.content
    assert set(answer.json()) == {"error", "detail", "where", "what_to_do", "id"}
    assert (answer.json()["error"], answer.json()["where"]) == ("invalid", where)
    assert not LaunchSetting.objects.exists()


def test_what_the_subscription_hangs_on_cannot_change(operating: APIClient, setting: LaunchSetting) -> None:
    Destination.objects.create(name="demo.other")
    for change in ({"key": "invoices"}, {"destination": "demo.other"}):
        answer = operating.patch("/api/v1/settings/orders/", change)
        assert (answer.status_code, answer.json()["where"]) == (400, next(iter(change)))
    assert operating.patch("/api/v1/destinations/demo.orders/", {"name": "x.y"}).status_code == 400


def test_no_attempt_at_all_is_refused_rather_than_taken_for_attempts_without_end(
    operating: APIClient,
) -> None:
    answer = operating.post("/api/v1/destinations/", {"name": "t.none", "max_attempts": 0})
    assert answer.status_code == 400 and "-1" in str(answer.json())


@pytest.mark.parametrize(
    "name",
    ["MA.DLA", "a::b", "a.#", "*", "$sys", "activemq.management", "DLQ.orders", "ExpiryQueue", "MA", ""],
)
def test_an_address_that_is_not_ours_to_make_is_refused(operating: APIClient, name: str) -> None:
    answer = operating.post("/api/v1/destinations/", {"name": name})

    assert (answer.status_code, answer.json()["where"]) == (400, "name")


def test_what_is_not_offered_yet_is_refused_and_not_silently_kept(operating: APIClient, db: None) -> None:
    answer = operating.post("/api/v1/destinations/", {"name": "demo.new", "accept_queue_senders": True})

    assert (answer.status_code, answer.json()["where"]) == (400, "accept_queue_senders")


# -- enabling ------------------------------------------------------------------------------------------------


def test_enabling_answers_the_activation_and_disabling_the_setting(
    operating: APIClient, setting: LaunchSetting, server: Server
) -> None:
    from django.utils import timezone

    make_alive(server, now=timezone.now())
    enabled = operating.post("/api/v1/settings/orders/enable/")
    assert enabled.status_code == 200
    assert [(run["server"], run["epoch"]) for run in enabled.json()["runs"]] == [("srv-1", 1)]
    shown = operating.get("/api/v1/settings/orders/").json()
    assert (shown["enabled"], shown["activation"]) == (True, enabled.json()["id"])
    assert operating.get(f"/api/v1/activations/{enabled.json()['id']}/").json()["started_by"] == "operator"

    disabled = operating.post("/api/v1/settings/orders/disable/", {"reason": "mending"})
    assert (disabled.json()["enabled"], disabled.json()["disabled_reason"]) == (False, "mending")


def test_enabling_what_is_not_on_the_broker_yet_is_a_conflict_with_the_reason(
    operating: APIClient, pool: Pool
) -> None:
    make_setting(pool, provision_state=ProvisionState.PENDING)
    answer = operating.post("/api/v1/settings/orders/enable/")

    assert (answer.status_code, answer.json()["error"]) == (409, "not_provisioned")
    assert "The broker is still creating the queues of this setting." in answer.json()["detail"]


def test_an_unknown_setting_is_not_found(operating: APIClient, db: None) -> None:
    for path in ("settings/nothing/", "queues/nothing/", "activations/0e6f9b0a-0000-4000-8000-000000000000/"):
        answer = operating.get(f"/api/v1/{path}")
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


# -- who may -------------------------------------------------------------------------------------------------

READING = [
    "settings/",
    "settings/orders/",
    "destinations/",
    "pools/",
    "servers/",
    "servers/srv-1/",
    "activations/",
]
CHANGING = [
    ("post", "settings/", WISH),
    ("patch", "settings/orders/", {"concurrency": 2}),
    ("post", "settings/orders/enable/", {}),
    ("post", "settings/orders/disable/", {}),
    ("post", "destinations/", {"name": "demo.new"}),
    ("patch", "destinations/demo.orders/", {"delay_ms": 1}),
    ("post", "pools/", {"name": "new", "servers": ["srv-1"]}),
    ("patch", "pools/demo/", {"servers": []}),
]


@pytest.mark.parametrize("path", READING)
def test_operator_and_viewer_read_and_the_outsider_does_not(
    path: str, setting: LaunchSetting, operator: User, viewer: User, outsider: User
) -> None:
    answers = [
        api_client(who).get(f"/api/v1/{path}").status_code for who in (operator, viewer, outsider, None)
    ]

    assert answers == [200, 200, 403, 401]


@pytest.mark.parametrize(("method", "path", "body"), CHANGING)
def test_only_the_operator_changes(
    method: str, path: str, body: Any, setting: LaunchSetting, operator: User, viewer: User, outsider: User
) -> None:
    def ask(who: User | None) -> int:
        return int(getattr(api_client(who), method)(f"/api/v1/{path}", body).status_code)

    assert [ask(viewer), ask(outsider), ask(None)] == [403, 403, 401]
    assert ask(operator) in (200, 201)


def test_a_servers_token_opens_nothing_of_people(server: Server, setting: LaunchSetting) -> None:
    assert [api_client(server).get(f"/api/v1/{path}").status_code for path in READING] == [401] * len(READING)


def test_a_revoked_token_and_a_retired_person_are_unknown(operator: User, setting: LaunchSetting) -> None:
    client, other = api_client(operator), api_client(operator)
    operator.api_tokens.order_by("pk").first().delete()  # type: ignore[union-attr]
    assert client.get("/api/v1/settings/").status_code == 401
    assert other.get("/api/v1/settings/").status_code == 200
    User.objects.filter(pk=operator.pk).update(is_active=False)
    assert other.get("/api/v1/settings/").status_code == 401


def test_two_tokens_of_a_server_are_valid_at_a_time(server: Server) -> None:
    secrets = [admission.issue_server_token(server, now=NOW) for _ in range(3)]

    assert [admission.find_server_token(secret, now=NOW) is not None for secret in secrets] == [
        False,
        True,
        True,
    ]
    assert all(secret.startswith("kma_") and len(secret) > 45 for secret in secrets)
    assert not any(secret in str(list(server.tokens.values())) for secret in secrets)


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"{", "not_json"),
        (b"\xff\xfe", "not_json"),
        (b'{"concurrency": NaN}', "not_json"),
        (b"[" * 200_000, "not_json"),
        (b'{"concurrency": ' + b"9" * 5000 + b"}", "not_json"),
        (b'"text"', "invalid"),
        (b"[]", "invalid"),
        (b"null", "invalid"),
    ],
)
def test_json_that_is_no_json_object_is_refused(
    operating: APIClient, setting: LaunchSetting, body: bytes, error: str
) -> None:
    answer = operating.post("/api/v1/settings/", body, content_type="application/json")

    assert (answer.status_code, json.loads(answer.content)["error"]) == (400, error)


def test_another_content_type_is_refused(operating: APIClient, setting: LaunchSetting) -> None:
    answer = operating.post("/api/v1/settings/", b"a=1", content_type="application/x-www-form-urlencoded")

    assert (answer.status_code, json.loads(answer.content)["error"]) == (415, "unsupported_media_type")


def test_a_body_that_is_too_large_is_answered_413_with_the_limit(
    operating: APIClient, setting: LaunchSetting
) -> None:
    large = b'{"description": "' + b"x" * 1_100_000 + b'"}'
    packed = gzip.compress(large)
    plain = operating.post("/api/v1/settings/", large, content_type="application/json")
    bomb = operating.post(
        "/api/v1/settings/", packed, content_type="application/json", HTTP_CONTENT_ENCODING="gzip"
    )

    for answer in (plain, bomb):
        assert answer.status_code == 413
        assert json.loads(answer.content)["limit"] == 1024 * 1024


def test_gzip_is_understood_and_broken_gzip_refused(server: Server) -> None:
    packed = gzip.compress(json.dumps(heartbeat_json("srv-1")).encode())
    client = api_client(server)

    def send(body: bytes) -> int:
        return client.post(
            "/api/v1/heartbeat/", body, content_type="application/json", HTTP_CONTENT_ENCODING="gzip"
        ).status_code

    assert [send(packed), send(packed[:-4]), send(b"no gzip")] == [200, 400, 400]


def test_a_nul_in_the_url_is_refused(operating: APIClient, setting: LaunchSetting) -> None:
    assert operating.get("/api/v1/settings/?agent=%00").status_code == 400
    assert operating.get("/api/v1/settings/a%00b/").status_code == 400


def test_an_address_that_does_not_exist_is_json_too(operating: APIClient, db: None) -> None:
    answer = operating.get("/api/v1/nothing/")

    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


def test_a_method_that_is_not_there_is_refused(operating: APIClient, setting: LaunchSetting) -> None:
    answer = operating.delete("/api/v1/destinations/demo.orders/")

    assert (answer.status_code, answer.json()["error"]) == (405, "method_not_allowed")


def test_an_error_of_ours_has_an_id_that_is_in_the_log(
    operating: APIClient,
    setting: LaunchSetting,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("inside")

    monkeypatch.setattr("agents.settings.operations.disable_setting", broken)
    answer = operating.post("/api/v1/settings/orders/disable/", {})

    assert (answer.status_code, answer.json()["error"]) == (500, "internal")
    assert "inside" not in answer.content.decode()
    assert answer.json()["id"] in caplog.text


def test_the_broker_away_is_answered_503(operating: APIClient, setting: LaunchSetting) -> None:
    answer = operating.get("/api/v1/queues/orders/")

    assert (answer.status_code, answer.json()["error"]) == (503, "broker_away")


def test_an_answer_to_a_change_has_every_field_that_looking_has(
    operating: APIClient, setting: LaunchSetting
) -> None:
    changed = operating.patch("/api/v1/settings/orders/", {"concurrency": 8}).json()

    assert changed == operating.get("/api/v1/settings/orders/").json()
    assert changed["disabled_by"] is None
