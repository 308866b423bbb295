import uuid

from django.db import migrations, models


def make_the_row(apps, schema_editor):
    apps.get_model("agents", "SiteIdentity").objects.get_or_create(pk=1)


class Migration(migrations.Migration):

    dependencies = [
        ("agents", "0025_subscription_state"),
    ]

    operations = [
        migrations.CreateModel(
            name="SiteIdentity",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("uuid", models.UUIDField(default=uuid.uuid4, verbose_name="site id")),
            ],
            options={
                "verbose_name": "site identity",
                "verbose_name_plural": "site identity",
                "default_permissions": (),
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="one_site_identity")],
            },
        ),
        migrations.RunPython(make_the_row, migrations.RunPython.noop),
    ]
