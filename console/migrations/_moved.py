"""Models that came here from another app: what Django knows of a model by its app comes with it."""

from typing import Any

from django.db import migrations


def of_model(name: str, *, out_of: str) -> migrations.RunPython:
    """Its content type, and with that the permissions that people have and the entries of the admin's
    history. A migration with it depends on `contenttypes.0002_remove_content_type_name`."""

    def come(apps: Any, schema_editor: Any) -> None:
        _to(apps, schema_editor, "console", out_of)

    def go_back(apps: Any, schema_editor: Any) -> None:
        _to(apps, schema_editor, out_of, "console")

    def _to(apps: Any, schema_editor: Any, app: str, before: str) -> None:
        types = apps.get_model("contenttypes", "ContentType").objects.using(schema_editor.connection.alias)
        types.filter(app_label=before, model=name.lower()).update(app_label=app)

    return migrations.RunPython(come, go_back)
