"""Saved filters of dead letters come here with their rows and ids; a column says of which list they are."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from console.migrations import _moved


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0003_processes_and_locks"),
        ("dlq", "0025_saved_filters_to_console"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="SavedFilter",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=100, verbose_name="name")),
                        ("query", models.TextField(verbose_name="filter")),
                        ("shared", models.BooleanField(default=False, verbose_name="for everybody")),
                        (
                            "created_at",
                            models.DateTimeField(default=django.utils.timezone.now, verbose_name="created"),
                        ),
                        (
                            "owner",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="saved_filters",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="owner",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "saved filter",
                        "verbose_name_plural": "saved filters",
                        "ordering": ("name",),
                        "default_permissions": (),
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("owner", "name"), name="filter_once_per_person"
                            )
                        ],
                    },
                ),
            ],
        ),
        _moved.of_model("SavedFilter", out_of="dlq"),
        migrations.AddField(
            model_name="savedfilter",
            name="list",
            field=models.CharField(default="dead_letters", max_length=20, verbose_name="list"),
            preserve_default=False,
        ),
        migrations.RemoveConstraint(model_name="savedfilter", name="filter_once_per_person"),
        migrations.AddConstraint(
            model_name="savedfilter",
            constraint=models.UniqueConstraint(
                fields=("list", "owner", "name"), name="filter_once_per_list_and_person"
            ),
        ),
    ]
