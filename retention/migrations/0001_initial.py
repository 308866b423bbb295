"""The whole schema, as `makemigrations` writes it."""

import console.reasons
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='ArchiveErasure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=24)),
                ('name', models.CharField(blank=True, max_length=300)),
                ('setting_key', models.CharField(blank=True, max_length=200)),
                ('cases', models.JSONField(default=list)),
                ('asked_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'verbose_name': 'archive erasure',
                'verbose_name_plural': 'archive erasures',
                'permissions': [('erase_personal', 'Can erase personal data')],
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('digest', 'name', 'setting_key'), name='archive_erasure_once')],
            },
        ),
        migrations.CreateModel(
            name='RetentionRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('holder', models.UUIDField(editable=False, null=True)),
                ('lease_until', models.DateTimeField(editable=False, null=True)),
                ('wait_reason', models.TextField(blank=True, verbose_name='waiting for')),
                ('problem', console.reasons.ReasonField(blank=True, default=console.reasons.Reason, verbose_name='problem')),
                ('state', models.CharField(choices=[('running', 'running'), ('done', 'done'), ('failed', 'failed')], default='running', max_length=10, verbose_name='state')),
                ('started_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='started')),
                ('ended_at', models.DateTimeField(null=True, verbose_name='ended')),
                ('part', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('position', models.BigIntegerField(default=0, editable=False)),
                ('deleted', models.BigIntegerField(default=0, verbose_name='deleted')),
            ],
            options={
                'verbose_name': 'retention run',
                'verbose_name_plural': 'retention runs',
                'ordering': ('-id',),
                'default_permissions': ('view',),
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'running')), fields=('state',), name='one_retention_at_a_time')],
            },
        ),
        migrations.CreateModel(
            name='RetentionFigure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('what', models.CharField(max_length=20, verbose_name='what')),
                ('setting_key', models.CharField(blank=True, default='', max_length=200, verbose_name='setting key')),
                ('rule', models.CharField(blank=True, default='', max_length=10, verbose_name='rule')),
                ('before', models.DateTimeField(null=True, verbose_name='older than')),
                ('deleted', models.BigIntegerField(default=0, verbose_name='deleted')),
                ('kept_for', models.JSONField(default=dict, verbose_name='kept, by reason')),
                ('since', models.DateTimeField(default=django.utils.timezone.now, verbose_name='since')),
                ('until', models.DateTimeField(default=django.utils.timezone.now, verbose_name='until')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='figures', to='retention.retentionrun', verbose_name='retention run')),
            ],
            options={
                'verbose_name': 'retention result',
                'verbose_name_plural': 'retention results',
                'ordering': ('id',),
                'default_permissions': (),
                'indexes': [models.Index(fields=['setting_key', '-id'], name='retention_of_setting')],
                'constraints': [models.UniqueConstraint(fields=('run', 'what', 'setting_key', 'rule'), name='retention_figure_once')],
            },
        ),
    ]
