from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0007_enablings")]

    operations = [
        migrations.AddField("launchsetting", "first_tries_one", models.BooleanField(editable=False, null=True)),
    ]
