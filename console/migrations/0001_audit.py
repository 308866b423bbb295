import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from console.migrations import _moved


class Migration(migrations.Migration):
    """The table is there, from the app dlq."""

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("contenttypes", "0002_remove_content_type_name"),
        ("dlq", "0024_audit_to_console"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="AuditEntry",
                    fields=[
                        ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                        ("by_name", models.CharField(blank=True, max_length=150, verbose_name="by")),
                        ("action", models.CharField(max_length=40, verbose_name="action")),
                        ("target", models.CharField(max_length=300, verbose_name="target")),
                        ("detail", models.JSONField(default=dict, verbose_name="detail")),
                        ("operation", models.UUIDField(null=True, verbose_name="operation")),
                        ("setting_key", models.CharField(blank=True, max_length=61, verbose_name="setting key")),
                        ("letter", models.BigIntegerField(null=True, verbose_name="dead letter")),
                        ("scope", models.CharField(blank=True, max_length=20, verbose_name="scope")),
                        ("reason", models.TextField(blank=True, verbose_name="reason")),
                        ("counts", models.JSONField(default=dict, verbose_name="counts")),
                        ("result", models.CharField(
                            choices=[("done", "done"), ("refused", "refused"), ("failed", "failed")],
                            default="done", max_length=10, verbose_name="result",
                        )),
                        ("at", models.DateTimeField(default=django.utils.timezone.now, verbose_name="at")),
                        ("by", models.ForeignKey(
                            null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+",
                            to=settings.AUTH_USER_MODEL, verbose_name="by",
                        )),
                    ],
                    options={
                        "verbose_name": "audit entry",
                        "verbose_name_plural": "audit",
                        "ordering": ("-id",),
                        "default_permissions": ("view",),
                        "indexes": [
                            models.Index(fields=["target", "-id"], name="audit_of_target"),
                            models.Index(fields=["operation"], name="audit_of_operation"),
                            models.Index(fields=["setting_key", "-id"], name="audit_of_setting"),
                            models.Index(fields=["action", "-id"], name="audit_of_action"),
                            models.Index(fields=["by_name", "-id"], name="audit_of_person"),
                            models.Index(fields=["letter", "-id"], name="audit_of_letter"),
                        ],
                    },
                ),
            ],
        ),
        _moved.of_model("AuditEntry", out_of="dlq"),
    ]
