"""Evaluations of alerts, and since when the site hears its servers, were rows among the beats of processes."""

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


class Migration(migrations.Migration):
    dependencies = [("agents", "0039_tokens_of_people"), ("console", "0003_processes_and_locks")]
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
    ]
