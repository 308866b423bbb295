import django.core.validators
from django.db import migrations, models


def fill_well(apps, schema_editor):
    """By their states: whatever did not succeed counts as with an error, which keeps more."""
    ended = apps.get_model("agents", "Activation").objects.filter(ended_at__isnull=False)
    ended.update(well=models.Case(models.When(state="succeeded", then=True), default=False))


class Migration(migrations.Migration):
    dependencies = [("agents", "0011_import_right")]

    operations = [
        migrations.AddField(
            "activation",
            "well",
            models.BooleanField(editable=False, null=True, verbose_name="finished well"),
        ),
        migrations.AddField(
            "launchsetting",
            "retention_days",
            models.PositiveIntegerField(
                blank=True,
                null=True,
                validators=[django.core.validators.MaxValueValidator(36500)],
                verbose_name="after an error: keep failure protocols from so many days before it (empty = as the site)",
            ),
        ),
        migrations.RunPython(fill_well, migrations.RunPython.noop),
    ]
