"""Tokens of people, in the table that agents has handed over."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from console.migrations import _moved


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0001_audit"),
        ("agents", "0039_tokens_of_people"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="ApiToken",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "name",
                            models.CharField(blank=True, default="", max_length=100, verbose_name="name"),
                        ),
                        ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                        (
                            "created_at",
                            models.DateTimeField(
                                default=django.utils.timezone.now, editable=False, verbose_name="created"
                            ),
                        ),
                        (
                            "last_used_at",
                            models.DateTimeField(editable=False, null=True, verbose_name="last used"),
                        ),
                        (
                            "revoked_at",
                            models.DateTimeField(blank=True, null=True, verbose_name="revoked"),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="api_tokens",
                                to=settings.AUTH_USER_MODEL,
                                verbose_name="user",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "API token",
                        "verbose_name_plural": "API tokens",
                        "ordering": ("user", "-created_at"),
                    },
                ),
            ],
        ),
        _moved.of_model("ApiToken", out_of="agents"),
    ]
