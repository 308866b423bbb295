"""Heartbeats of processes and locks get a table each: they shared one of agents, with other things.

Locks begin free."""

from typing import Any

from django.db import migrations, models

PROCESSES = ("beat", "feed")


def come(apps: Any, schema_editor: Any) -> None:
    heartbeats = apps.get_model("console", "ProcessHeartbeat").objects
    for row in apps.get_model("agents", "ProcessBeat").objects.filter(name__in=PROCESSES):
        heartbeats.create(process=row.name, at=row.at)


def go_back(apps: Any, schema_editor: Any) -> None:
    beats = apps.get_model("agents", "ProcessBeat").objects
    for row in apps.get_model("console", "ProcessHeartbeat").objects.all():
        beats.update_or_create(name=row.process, defaults={"at": row.at})


class Migration(migrations.Migration):
    dependencies = [("console", "0002_tokens"), ("agents", "0039_tokens_of_people")]
    operations = [
        migrations.CreateModel(
            name="ProcessHeartbeat",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("process", models.CharField(max_length=60, unique=True, verbose_name="process")),
                ("at", models.DateTimeField(verbose_name="last heartbeat")),
            ],
            options={
                "verbose_name": "process heartbeat",
                "verbose_name_plural": "process heartbeats",
                "ordering": ("process",),
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="NamedLock",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60, unique=True, verbose_name="name")),
                ("held_until", models.DateTimeField(verbose_name="held until")),
            ],
            options={
                "verbose_name": "named lock",
                "verbose_name_plural": "named locks",
                "ordering": ("name",),
                "default_permissions": (),
            },
        ),
        migrations.RunPython(come, go_back),
    ]
