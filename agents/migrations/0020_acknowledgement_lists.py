from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("agents", "0019_after_last")]

    operations = [
        migrations.RemoveIndex(model_name="acknowledgement", name="open_acks_by_jms_id"),
        migrations.AddIndex(
            model_name="acknowledgement",
            index=models.Index(fields=["jms_message_id", "setting"], name="acks_by_jms_id"),
        ),
        migrations.AddIndex(
            model_name="acknowledgement",
            index=models.Index(
                fields=["setting", "-ended_at", "-id"],
                condition=Q(ended_at__isnull=False),
                name="acks_of_setting_by_end",
            ),
        ),
        migrations.AddIndex(
            model_name="acknowledgement",
            index=models.Index(fields=["state", "-created_at", "-id"], name="acks_by_state"),
        ),
    ]
