from typing import Any

from django.db import migrations, models


def tie(apps: Any, schema_editor: Any) -> None:
    """What began since its setting was enabled belongs to that enabling; so does what is open while it is enabled."""
    del schema_editor
    settings = apps.get_model("agents", "LaunchSetting").objects
    activations = apps.get_model("agents", "Activation").objects
    for setting in settings.filter(enabled=True):
        own = activations.filter(setting=setting)
        since = own.filter(started_at__gte=setting.state_since)
        (since | own.filter(state__in=("pending", "running"))).update(enabling=1)
    settings.update(enablings=1)


class Migration(migrations.Migration):
    dependencies = [("agents", "0006_counted_marks")]

    operations = [
        migrations.AddField("launchsetting", "enablings", models.PositiveIntegerField(default=0, editable=False)),
        migrations.AddField("activation", "enabling", models.PositiveIntegerField(default=0, editable=False)),
        migrations.AddField("activation", "number", models.PositiveIntegerField(default=0, editable=False)),
        migrations.AddIndex(
            "activation",
            models.Index(fields=["setting", "-number", "-started_at"], name="activations_in_their_order"),
        ),
        migrations.RunPython(tie, migrations.RunPython.noop),
    ]
