"""Tokens of people moved from one app to another: each stays valid, and whoever may revoke them still may."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from console.tokens.models import ApiToken
from tests.web.rows import NOW

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

BEFORE, AFTER = ("agents", "0038_reports_as_codes"), ("console", "0002_tokens")


def kinds() -> list[tuple[int, str]]:
    return list(ContentType.objects.filter(model="apitoken").values_list("pk", "app_label"))


def test_each_token_stays_valid_and_people_keep_their_permissions(
    migrate: Callable[[str, str], object],
) -> None:
    ada, keeper = (User.objects.create_user(name) for name in ("ada", "keeper"))
    secret = ApiToken.issue(ada, "scripts", now=NOW)
    gone = ApiToken.issue(ada, "old", now=NOW)
    ApiToken.objects.filter(name="old").update(revoked_at=NOW)
    kind = ContentType.objects.get_or_create(app_label="console", model="apitoken")[0]
    right, _ = Permission.objects.get_or_create(content_type=kind, codename="change_apitoken")
    keepers = Group.objects.create(name="keepers")
    keepers.permissions.add(right)
    keeper.groups.add(keepers)
    rows = list(ApiToken.objects.order_by("pk").values())

    migrate(*BEFORE)
    assert kinds() == [(kind.pk, "agents")]
    assert User.objects.get(pk=keeper.pk).has_perm("agents.change_apitoken")
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, name FROM agents_apitoken ORDER BY id")
        assert cursor.fetchall() == [(row["id"], row["name"]) for row in rows]

    migrate(*AFTER)
    assert kinds() == [(kind.pk, "console")]
    assert User.objects.get(pk=keeper.pk).has_perm("console.change_apitoken")
    assert list(ApiToken.objects.order_by("pk").values()) == rows
    assert [ApiToken.find(each, now=NOW) is not None for each in (secret, gone)] == [True, False]
    assert ApiToken.objects.get(digest=rows[0]["digest"]).user == ada
    assert ApiToken.objects.create(user=ada, digest="another").pk > rows[-1]["id"]
