from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("failures", "0016_durable_messages"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="failuregroup",
            index=models.Index(fields=["server_name", "-last_at"], name="groups_of_server"),
        ),
    ]
