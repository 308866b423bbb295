"""The index of properties. Few protocols are put into it at once; of many a task does it while the site runs
(`failures.protocols.properties`)."""

import django.utils.timezone
from django.db import migrations, models

from failures.protocols.properties import INDEX

# So many are a matter of seconds.
FEW = 100_000


def create_index(apps, schema_editor):
    protocols = apps.get_model("failures", "FailureProtocol").objects.order_by()
    are_few = protocols.values("pk")[: FEW + 1].count() <= FEW
    for statement in INDEX.created(filled=are_few):
        schema_editor.execute(statement)
    if not are_few:
        apps.get_model("failures", "PropertyBackfill").objects.create()


def drop_index(apps, schema_editor):
    for statement in INDEX.dropped():
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('failures', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='PropertyBackfill',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('open', models.BooleanField(default=True, verbose_name='open')),
                ('began_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='began')),
                ('ended_at', models.DateTimeField(null=True, verbose_name='ended')),
                ('position', models.UUIDField(editable=False, null=True)),
                ('rows', models.BigIntegerField(default=0, verbose_name='failure protocols')),
            ],
            options={
                'verbose_name': 'property index backfill',
                'verbose_name_plural': 'property index backfills',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(condition=models.Q(('open', True)), fields=('open',), name='one_open_property_backfill')],
            },
        ),
        migrations.RunPython(create_index, drop_index),
    ]
