"""A site of before, where each list had a table of its own for its saved filters: no row is lost on the way
to the one of today, nor on the way back."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType

from console.saved_filters.models import SavedFilter
from tests.web.reports import AT

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
BEFORE, AFTER = ("dlq", "0024_audit_to_console"), ("failures", "0021_saved_filters_to_console")
KEPT = ("owner", "name", "query", "shared", "created_at")
TABLES = {"dead_letters": ("dlq", "SavedFilter"), "protocols": ("failures", "SavedView")}


def test_rows_of_both_tables_come_to_one_and_go_back(migrate: Callable[[str, str], Any]) -> None:
    ann, bob = (User.objects.create_user(name).pk for name in ("ann", "bob"))
    kind = ContentType.objects.get_for_model(SavedFilter).pk

    def of_before() -> dict[str, Any]:
        """The tables of before, by what list they are of."""
        apps = migrate(*BEFORE).apps
        return {word: apps.get_model(*name)._default_manager for word, name in TABLES.items()}

    tables = of_before()
    for number, (word, owner) in enumerate([(w, o) for w in TABLES for o in (ann, bob)]):
        for name in ("keys", f"of {number}"):
            fields = {"name": name, "query": f"text={number}", "shared": number % 2 == 0, "created_at": AT}
            tables[word].create(owner_id=owner, **fields)
    tables["dead_letters"].filter(name="of 0").delete()
    before = {word: list(rows.order_by("pk").values_list(*KEPT)) for word, rows in tables.items()}
    numbers = list(tables["dead_letters"].order_by("pk").values_list("pk", flat=True))
    assert [len(rows) for rows in before.values()] == [3, 4]

    migrate(*AFTER)

    rows = SavedFilter.objects.order_by("pk")
    for word, expected in before.items():
        assert list(rows.filter(list=word).values_list(*KEPT)) == expected
    assert list(rows.filter(list="dead_letters").values_list("pk", flat=True)) == numbers
    assert ContentType.objects.get(app_label="console", model="savedfilter").pk == kind
    made = SavedFilter.objects.create(list="protocols", owner_id=ann, name="new", query="text=new")
    assert made.pk > max(numbers)
    made.delete()

    tables = of_before()

    assert {word: list(rows.order_by("pk").values_list(*KEPT)) for word, rows in tables.items()} == before
    assert list(tables["dead_letters"].order_by("pk").values_list("pk", flat=True)) == numbers
    assert ContentType.objects.get(app_label="dlq", model="savedfilter").pk == kind
