"""The beats of processes, whose table had rows of five meanings, go.

Evaluations of alerts, and since when the site hears its servers, find a place of their own here; heartbeats and
locks have theirs in the console."""

from typing import Any

from django.db import migrations, models

EVALUATION, HEARING, SITE = "alerts:", "hearing", 1


def part(apps: Any, schema_editor: Any) -> None:
    evaluations = apps.get_model("agents", "AlertEvaluation").objects
    beats = apps.get_model("agents", "ProcessBeat").objects
    for row in beats.filter(name__startswith=EVALUATION):
        evaluations.create(kind=row.name.removeprefix(EVALUATION), at=row.at)
    for row in beats.filter(name=HEARING):
        apps.get_model("agents", "SiteIdentity").objects.filter(pk=SITE).update(hearing_since=row.at)


def join(apps: Any, schema_editor: Any) -> None:
    beats = apps.get_model("agents", "ProcessBeat").objects
    for row in apps.get_model("agents", "AlertEvaluation").objects.all():
        beats.update_or_create(name=EVALUATION + row.kind, defaults={"at": row.at})
    for site in apps.get_model("agents", "SiteIdentity").objects.exclude(hearing_since=None):
        beats.update_or_create(name=HEARING, defaults={"at": site.hearing_since})


def forget_model(apps: Any, schema_editor: Any) -> None:
    apps.get_model("contenttypes", "ContentType").objects.filter(
        app_label="agents", model="processbeat"
    ).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0039_tokens_of_people"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("console", "0003_processes_and_locks"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [
        migrations.CreateModel(
            name="AlertEvaluation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=40, unique=True, verbose_name="kind")),
                ("at", models.DateTimeField(verbose_name="at")),
            ],
            options={
                "verbose_name": "alert evaluation",
                "verbose_name_plural": "alert evaluations",
                "ordering": ("kind",),
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="siteidentity",
            name="hearing_since",
            field=models.DateTimeField(null=True, verbose_name="hears servers since"),
        ),
        migrations.RunPython(part, join),
        migrations.DeleteModel("ProcessBeat"),
        migrations.RunPython(forget_model, migrations.RunPython.noop),
    ]
