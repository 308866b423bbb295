from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("dlq", "0001_initial")]

    operations = [
        migrations.AlterModelOptions(
            name="deadletter",
            options={
                "default_permissions": ("view",),
                "ordering": ("-id",),
                "permissions": [
                    ("give_back", "Can give dead letters back to their setting"),
                    ("can_see_masked", "Can see masked properties of dead letters"),
                ],
                "verbose_name": "dead letter",
                "verbose_name_plural": "dead letters",
            },
        ),
    ]
