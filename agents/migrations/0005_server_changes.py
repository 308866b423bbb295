import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0004_list_indexes")]

    operations = [
        migrations.AddField("activation", "added_seen", models.BigIntegerField(editable=False, null=True)),
        migrations.AlterField(
            "statechange",
            "setting",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="changes",
                to="agents.launchsetting",
                verbose_name="launch setting",
            ),
        ),
    ]
