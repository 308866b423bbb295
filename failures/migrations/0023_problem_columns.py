from django.db import migrations

import console.reasons


class Migration(migrations.Migration):
    dependencies = [("failures", "0022_problems_as_codes")]
    operations = [
        migrations.AlterField(
            model_name=model,
            name="problem",
            field=console.reasons.ReasonField(
                blank=True, default=console.reasons.Reason, verbose_name="problem"
            ),
        )
        for model in ("pipelinerun", "retentionrun")
    ]
