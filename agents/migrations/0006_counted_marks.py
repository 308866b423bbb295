from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0005_server_changes")]

    operations = [
        migrations.AddField("run", "counted_marks", models.JSONField(blank=True, default=list, editable=False)),
    ]
