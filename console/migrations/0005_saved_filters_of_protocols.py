"""Rows of saved filters of protocols come here; their ids are new. Killed anywhere, the step has not
happened."""

from typing import Any

from django.db import migrations

KEPT = ("owner_id", "name", "query", "shared", "created_at")


def come(apps: Any, schema_editor: Any) -> None:
    views, filters = _rows(apps, schema_editor)
    _move(views, filters, list="protocols")


def go_back(apps: Any, schema_editor: Any) -> None:
    views, filters = _rows(apps, schema_editor)
    _move(filters.filter(list="protocols"), views)


def _rows(apps: Any, schema_editor: Any) -> tuple[Any, Any]:
    alias = schema_editor.connection.alias
    models = (apps.get_model("failures", "SavedView"), apps.get_model("console", "SavedFilter"))
    return tuple(model._default_manager.using(alias).order_by("pk") for model in models)


def _move(rows: Any, to: Any, **more: str) -> None:
    to.bulk_create((to.model(**row, **more) for row in rows.values(*KEPT)), batch_size=100)
    rows.delete()


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0004_saved_filters"),
        ("failures", "0020_returned_by_version"),
    ]

    operations = [migrations.RunPython(come, go_back)]
