import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0010_letter_rights"),
        ("dlq", "0005_planning"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="WaitingAction",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("setting_key", models.CharField(max_length=61, verbose_name="setting key")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("try_now", "try now"),
                            ("to_dlq", "to the dead letters"),
                            ("hold", "hold back"),
                            ("release", "release"),
                        ],
                        max_length=10,
                        verbose_name="action",
                    ),
                ),
                (
                    "part",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("delayed", "delayed"), ("held", "held back")],
                        max_length=10,
                        verbose_name="part",
                    ),
                ),
                ("every", models.BooleanField(default=False, verbose_name="all of them")),
                ("whole", models.BooleanField(default=False, editable=False)),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("by_name", models.CharField(blank=True, max_length=150, verbose_name="by")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("planned", "planned"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("stopped", "stopped"),
                        ],
                        default="planned",
                        max_length=10,
                        verbose_name="state",
                    ),
                ),
                ("total", models.PositiveIntegerField(default=0, verbose_name="messages")),
                ("counts", models.JSONField(default=dict, verbose_name="counts")),
                ("problem", models.TextField(blank=True, verbose_name="problem")),
                ("planned_all", models.BooleanField(default=False, editable=False)),
                ("stopping", models.BooleanField(default=False, verbose_name="to be stopped")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, verbose_name="created")),
                ("acted_at", models.DateTimeField(null=True, verbose_name="last asked of the broker")),
                ("finished_at", models.DateTimeField(null=True, verbose_name="finished")),
                ("lease_until", models.DateTimeField(editable=False, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
                (
                    "setting",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="waiting_actions",
                        to="agents.launchsetting",
                        verbose_name="launch setting",
                    ),
                ),
            ],
            options={
                "verbose_name": "action on waiting messages",
                "verbose_name_plural": "actions on waiting messages",
                "ordering": ("-created_at", "-id"),
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="WaitingItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.BigIntegerField(verbose_name="broker's id")),
                ("setting_key", models.CharField(max_length=61, verbose_name="setting key")),
                ("message_key", models.CharField(blank=True, max_length=255, verbose_name="message key")),
                (
                    "fate",
                    models.CharField(
                        choices=[
                            ("planned", "planned"),
                            ("acted", "asked of the broker"),
                            ("done", "done"),
                            ("left", "was handled or expired before"),
                            ("stayed", "stayed where it was"),
                        ],
                        default="planned",
                        max_length=10,
                        verbose_name="what became of it",
                    ),
                ),
                ("at", models.DateTimeField(default=django.utils.timezone.now, verbose_name="since")),
                (
                    "action",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="dlq.waitingaction",
                        verbose_name="action",
                    ),
                ),
            ],
            options={
                "verbose_name": "message of an action",
                "verbose_name_plural": "messages of an action",
                "ordering": ("id",),
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="waitingaction",
            index=models.Index(fields=["setting_key", "-created_at"], name="waiting_of_setting"),
        ),
        migrations.AddIndex(
            model_name="waitingaction",
            index=models.Index(
                condition=models.Q(("state__in", ["planned", "running"])),
                fields=["created_at"],
                name="open_waiting_actions",
            ),
        ),
        migrations.AddConstraint(
            model_name="waitingaction",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["planned", "running"])),
                fields=("setting_key",),
                name="one_waiting_action_at_a_time",
            ),
        ),
        migrations.AddIndex(
            model_name="waitingitem",
            index=models.Index(fields=["action", "fate"], name="waiting_items_by_fate"),
        ),
        migrations.AddIndex(
            model_name="waitingitem",
            index=models.Index(fields=["setting_key", "message_key"], name="waiting_items_of_message"),
        ),
        migrations.AddIndex(
            model_name="waitingitem",
            index=models.Index(fields=["setting_key", "number"], name="waiting_items_by_number"),
        ),
        migrations.AddConstraint(
            model_name="waitingitem",
            constraint=models.UniqueConstraint(fields=("action", "number"), name="message_once_per_waiting_action"),
        ),
    ]
