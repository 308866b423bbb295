import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0016_alert_indexes")]

    operations = [
        migrations.AddField(
            model_name="launchsetting",
            name="dups_ok_messages",
            field=models.PositiveIntegerField(
                default=100,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(1000),
                ],
                verbose_name="duplicates allowed: acknowledge so many messages together",
            ),
        ),
        migrations.AddField(
            model_name="launchsetting",
            name="dups_ok_seconds",
            field=models.FloatField(
                default=1.0,
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(60.0),
                ],
                verbose_name="duplicates allowed: acknowledge after so long at most, s",
            ),
        ),
        migrations.AlterField(
            model_name="launchsetting",
            name="mode",
            field=models.CharField(
                choices=[("TRANSACTED", "transacted"), ("AUTO", "automatic"), ("DUPS_OK", "duplicates allowed")],
                default="TRANSACTED",
                max_length=10,
                verbose_name="acknowledgement mode",
            ),
        ),
    ]
