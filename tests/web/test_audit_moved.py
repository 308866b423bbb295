"""A site of before: its audit was of the app dlq. It comes to the console whole, with who may see it, and
goes back so."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.utils import timezone

from console.audit.log import record, record_refused
from console.audit.models import AuditEntry
from tests.web import reports

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

BEFORE, TODAY = ("dlq", "0023_problem_columns"), ("console", "0001_audit")
INDEXES = {
    "audit_of_target", "audit_of_operation", "audit_of_setting", "audit_of_action", "audit_of_person",
    "audit_of_letter",
}  # fmt: skip


def rows_in(table: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY id")
        return list(cursor.fetchall())


def tables() -> set[str]:
    return {name for name in connection.introspection.table_names() if name.endswith("_auditentry")}


def indexes_of(table: str) -> set[str]:
    with connection.cursor() as cursor:
        return INDEXES & connection.introspection.get_constraints(cursor, table).keys()


def right_to_see() -> Permission:
    kind, _ = ContentType.objects.get_or_create(app_label="console", model="auditentry")
    named = {"name": "Can view audit entry"}
    right, _ = Permission.objects.get_or_create(content_type=kind, codename="view_auditentry", defaults=named)
    return right


def test_every_entry_and_every_right_to_see_them_is_kept_both_ways(
    migrate: Callable[[str, str], object],
) -> None:
    anna, bob = reports.person("anna"), reports.person("bob")
    anna.user_permissions.add(right_to_see())
    group = Group.objects.create(name="auditors")
    group.permissions.add(right_to_see())
    bob.groups.add(group)
    about: dict[str, Any] = {"operation": uuid4(), "setting_key": "orders", "letter": 7, "scope": "one"}
    counts, now = {"moved": 1}, timezone.now()
    record("erase", by=anna, now=now, target="letter:7", counts=counts, reason="wrong", **about)
    record_refused("erase_begun", by=bob, target="letter:8", why="no right")
    last = record("look", by=None, now=timezone.now(), target="letter:9").pk
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM console_auditentry WHERE id = %s", [last])
    entries = rows_in("console_auditentry")

    migrate(*BEFORE)

    assert (tables(), rows_in("dlq_auditentry")) == ({"dlq_auditentry"}, entries)
    assert indexes_of("dlq_auditentry") == INDEXES
    assert User.objects.get(pk=anna.pk).get_all_permissions() == {"dlq.view_auditentry"}

    migrate(*TODAY)

    assert (tables(), rows_in("console_auditentry"), len(entries)) == ({"console_auditentry"}, entries, 2)
    assert indexes_of("console_auditentry") == INDEXES
    for person in (anna, bob):
        assert User.objects.get(pk=person.pk).get_all_permissions() == {"console.view_auditentry"}
    assert not ContentType.objects.filter(app_label="dlq", model="auditentry").exists()
    assert record("look", by=None, now=timezone.now(), target="letter:9").pk > last, "no number twice"
    assert AuditEntry.objects.get(letter=7).by == anna
