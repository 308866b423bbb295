"""The whole schema, as `makemigrations` writes it."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='NamedLock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True, verbose_name='name')),
                ('held_until', models.DateTimeField(verbose_name='held until')),
            ],
            options={
                'verbose_name': 'named lock',
                'verbose_name_plural': 'named locks',
                'ordering': ('name',),
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ProcessHeartbeat',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('process', models.CharField(max_length=60, unique=True, verbose_name='process')),
                ('at', models.DateTimeField(verbose_name='last heartbeat')),
            ],
            options={
                'verbose_name': 'process heartbeat',
                'verbose_name_plural': 'process heartbeats',
                'ordering': ('process',),
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, default='', max_length=100, verbose_name='name')),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('last_used_at', models.DateTimeField(editable=False, null=True, verbose_name='last used')),
                ('revoked_at', models.DateTimeField(blank=True, null=True, verbose_name='revoked')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'API token',
                'verbose_name_plural': 'API tokens',
                'ordering': ('user', '-created_at'),
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('by_name', models.CharField(blank=True, max_length=150, verbose_name='by')),
                ('action', models.CharField(max_length=40, verbose_name='action')),
                ('target', models.CharField(max_length=300, verbose_name='target')),
                ('detail', models.JSONField(default=dict, verbose_name='detail')),
                ('operation', models.UUIDField(null=True, verbose_name='operation')),
                ('setting_key', models.CharField(blank=True, max_length=61, verbose_name='setting key')),
                ('letter', models.BigIntegerField(null=True, verbose_name='dead-lettered message')),
                ('scope', models.CharField(blank=True, max_length=20, verbose_name='scope')),
                ('reason', models.TextField(blank=True, verbose_name='reason')),
                ('counts', models.JSONField(default=dict, verbose_name='counts')),
                ('result', models.CharField(choices=[('done', 'done'), ('refused', 'refused'), ('failed', 'failed')], default='done', max_length=10, verbose_name='result')),
                ('at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='time')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='by')),
            ],
            options={
                'verbose_name': 'audit log entry',
                'verbose_name_plural': 'audit log',
                'ordering': ('-id',),
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['target', '-id'], name='audit_of_target'), models.Index(fields=['operation'], name='audit_of_operation'), models.Index(fields=['setting_key', '-id'], name='audit_of_setting'), models.Index(fields=['action', '-id'], name='audit_of_action'), models.Index(fields=['by_name', '-id'], name='audit_of_person'), models.Index(fields=['letter', '-id'], name='audit_of_letter')],
            },
        ),
        migrations.CreateModel(
            name='SavedFilter',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('list', models.CharField(max_length=20, verbose_name='list')),
                ('name', models.CharField(max_length=100, verbose_name='name')),
                ('query', models.TextField(verbose_name='filter')),
                ('shared', models.BooleanField(default=False, verbose_name='shared with everyone')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='created')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_filters', to=settings.AUTH_USER_MODEL, verbose_name='owner')),
            ],
            options={
                'verbose_name': 'saved filter',
                'verbose_name_plural': 'saved filters',
                'ordering': ('name',),
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('list', 'owner', 'name'), name='filter_once_per_list_and_person')],
            },
        ),
    ]
