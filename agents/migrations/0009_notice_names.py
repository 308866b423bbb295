import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0008_trial_of_an_enabling")]

    operations = [
        migrations.AlterField(
            "noticetarget",
            "setting",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notice_targets",
                to="agents.launchsetting",
                verbose_name="launch setting",
            ),
        ),
        migrations.AlterField(
            "noticetarget",
            "pool",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notice_targets",
                to="agents.pool",
                verbose_name="pool",
            ),
        ),
        # For the page of a server: what ended there last.
        migrations.AddIndex(
            "run",
            models.Index(fields=["server", "-closed_at", "-id"], name="runs_of_server_by_end"),
        ),
    ]
