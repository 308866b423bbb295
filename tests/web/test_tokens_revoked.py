"""Revoking a token: on its page, over REST, and several at once in the admin."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from agents.models import Pool, Server, ServerToken
from agents.servers.admission import find_server_token, issue_server_token
from console.audit.models import AuditEntry
from console.models import ApiToken
from tests.web.rows import NOW, api_client, make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("admin", password=None)


@pytest.fixture
def client(admin: User) -> Client:
    client = Client()
    client.force_login(admin)
    return client


@pytest.fixture
def secret(groups: None) -> str:
    return ApiToken.issue(make_person("ann", "viewer"), "nightly", now=NOW)


def entries() -> list[tuple[str, str, str, Any]]:
    rows = AuditEntry.objects.order_by("pk")
    return list(rows.values_list("action", "target", "result", "detail"))


def test_a_page_asks_and_then_the_token_is_unknown(client: Client, secret: str) -> None:
    token = ApiToken.objects.get()
    listed = client.get(reverse("admin:console_apitoken_changelist")).content.decode()
    page = client.get(f"/tokens/{token.pk}/revoke/").content.decode()
    assert f"/tokens/{token.pk}/revoke/" in listed and "nightly" in page and token.digest not in page
    assert ApiToken.find(secret, now=NOW) == token

    said = client.post(f"/tokens/{token.pk}/revoke/", follow=True).content.decode()
    assert "Token revoked: nightly" in said and ApiToken.find(secret, now=NOW) is None
    detail = {"user": "ann", "name": "nightly"}
    assert entries() == [("token.revoke", f"token:{token.pk}", "done", detail)]
    listed = client.get(reverse("admin:console_apitoken_changelist")).content.decode()
    assert f"/tokens/{token.pk}/revoke/" not in listed


def test_rest_lists_tokens_without_their_secrets_and_revokes_one(admin: User, secret: str) -> None:
    rest = api_client(admin)
    mine = ApiToken.objects.get(user=admin)
    token = ApiToken.objects.exclude(pk=mine.pk).get()
    answer = rest.get("/api/v1/tokens/")
    assert {each["user"] for each in answer.json()["results"]} == {"admin", "ann"}
    assert token.digest not in answer.content.decode()

    assert rest.post(f"/api/v1/tokens/{token.pk}/revoke/").json()["revoked_at"]
    assert ApiToken.find(secret, now=NOW) is None
    assert rest.post("/api/v1/tokens/999/revoke/").status_code == 404
    assert [(entry[0], entry[2]) for entry in entries()] == [
        ("token.revoke", "done"), ("token.revoke", "refused"),
    ]  # fmt: skip


def test_the_token_of_a_server_is_revoked_on_a_page_and_over_rest(
    client: Client, admin: User, pool: Pool
) -> None:
    server = Server.objects.get(name="srv-1")
    first, second = (issue_server_token(server, now=NOW) for _ in range(2))
    one, other = ServerToken.objects.order_by("pk")
    client.post(f"/server-tokens/{one.pk}/revoke/")
    answer = api_client(admin).post(f"/api/v1/server-tokens/{other.pk}/revoke/").json()

    assert answer["server"] == "srv-1" and answer["revoked_at"] and "digest" not in answer
    assert [find_server_token(secret, now=NOW) for secret in (first, second)] == [None, None]
    assert [entry[0] for entry in entries()] == ["server_token.revoke"] * 2


def test_several_are_revoked_in_the_admin_with_an_entry_each(client: Client, secret: str) -> None:
    ApiToken.issue(User.objects.get(username="ann"), "other", now=NOW)
    over = ApiToken.objects.create(user=User.objects.get(username="ann"), digest="d", revoked_at=NOW)
    url = reverse("admin:console_apitoken_changelist")
    chosen = [token.pk for token in ApiToken.objects.order_by("pk")]
    said = client.post(url, {"action": "revoke", "_selected_action": chosen}, follow=True)

    assert "2 tokens revoked." in said.content.decode()
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    assert {(target, detail.get("changed", True)) for _code, target, _result, detail in entries()} == {
        (f"token:{pk}", pk != over.pk) for pk in chosen
    }


def test_who_may_look_at_tokens_only_revokes_none(secret: str) -> None:
    person = make_person("auditor")
    person.user_permissions.add(Permission.objects.get(codename="view_apitoken"))
    client, token = Client(), ApiToken.objects.get()
    client.force_login(person)

    assert client.post(f"/tokens/{token.pk}/revoke/").status_code == 403
    assert api_client(person).post(f"/api/v1/tokens/{token.pk}/revoke/").status_code == 403
    chosen = {"action": "revoke", "_selected_action": [token.pk]}
    client.post(reverse("admin:console_apitoken_changelist"), chosen)
    assert ApiToken.find(secret, now=NOW) == token
    assert [entry[:3] for entry in entries()] == [("token.revoke", f"token:{token.pk}", "refused")] * 2
