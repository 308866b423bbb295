"""Columns for codes beside the sentences of before. Apart from the step that fills them: PostgreSQL changes no
table in the transaction that has changed its rows."""

import console.reasons
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0035_reason_columns")]
    operations = [
        migrations.AddField("run", "problems", console.reasons.ReasonsField(verbose_name="problems")),
        migrations.AddField("run", "blocked", models.JSONField(editable=False, null=True)),
        # A JSON object may be longer than the name of a token.
        migrations.AlterField(
            "acknowledgement",
            "answered_from",
            models.TextField(blank=True, default="", verbose_name="answered through"),
        ),
    ]
