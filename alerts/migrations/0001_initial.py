"""The whole schema, as `makemigrations` writes it."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('agents', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AlertEvaluation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40, unique=True, verbose_name='kind')),
                ('at', models.DateTimeField(verbose_name='time')),
            ],
            options={
                'verbose_name': 'alert evaluation',
                'verbose_name_plural': 'alert evaluations',
                'ordering': ('kind',),
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40, verbose_name='kind')),
                ('subject', models.CharField(blank=True, max_length=300, verbose_name='subject')),
                ('severity', models.PositiveSmallIntegerField(choices=[(1, 'warning'), (2, 'critical')], verbose_name='severity')),
                ('state', models.CharField(choices=[('calm', 'pending'), ('open', 'open'), ('snoozed', 'snoozed'), ('closed', 'closed')], max_length=10, verbose_name='state')),
                ('facts', models.JSONField(default=dict)),
                ('value', models.FloatField(default=0.0, verbose_name='value')),
                ('opened_at', models.DateTimeField(null=True, verbose_name='opened')),
                ('above_since', models.DateTimeField(null=True)),
                ('below_since', models.DateTimeField(null=True)),
                ('closed_at', models.DateTimeField(null=True, verbose_name='closed')),
                ('by_hand', models.BooleanField(default=False, verbose_name='closed manually')),
                ('held', models.BooleanField(default=False)),
                ('snoozed_until', models.DateTimeField(null=True, verbose_name='snoozed until')),
                ('repeats', models.PositiveIntegerField(default=0, verbose_name='reminders')),
                ('repeat_at', models.DateTimeField(null=True)),
                ('revision', models.PositiveIntegerField(default=1)),
                ('pools', models.ManyToManyField(related_name='alerts', to='agents.pool', verbose_name='pools')),
                ('server', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='alerts', to='agents.server', verbose_name='server')),
                ('setting', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='alerts', to='agents.launchsetting', verbose_name='launch setting')),
            ],
            options={
                'verbose_name': 'alert',
                'verbose_name_plural': 'alerts',
                'ordering': ('-opened_at', '-id'),
                'permissions': [('can_handle_alerts', 'Can snooze and close alerts')],
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='AlertRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40, verbose_name='kind')),
                ('watched', models.BooleanField(default=True, verbose_name='monitored')),
                ('upper', models.FloatField(blank=True, null=True, verbose_name='opens at')),
                ('lower', models.FloatField(blank=True, null=True, verbose_name='closes below')),
                ('open_after_seconds', models.PositiveIntegerField(blank=True, null=True, verbose_name='opens after, s')),
                ('close_after_seconds', models.PositiveIntegerField(blank=True, null=True, verbose_name='closes after, s')),
                ('pool', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='alert_rules', to='agents.pool', verbose_name='pool')),
            ],
            options={
                'verbose_name': 'alert rule',
                'verbose_name_plural': 'alert rules',
                'ordering': ('kind', 'pool'),
            },
        ),
        migrations.CreateModel(
            name='AlertTransition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.CharField(max_length=10, verbose_name='step')),
                ('value', models.FloatField(default=0.0, verbose_name='value')),
                ('until', models.DateTimeField(null=True, verbose_name='until')),
                ('reason', models.TextField(blank=True, default='', verbose_name='reason')),
                ('at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='time')),
                ('alert', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='transitions', to='alerts.alert')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='by')),
            ],
            options={
                'verbose_name': 'alert transition',
                'verbose_name_plural': 'alert transitions',
                'ordering': ('-id',),
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='NoticeTarget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel', models.CharField(choices=[('email', 'e-mail'), ('webhook', 'webhook')], max_length=7, verbose_name='channel')),
                ('address', models.CharField(max_length=500, verbose_name='address')),
                ('secret', models.CharField(blank=True, default='', editable=False, max_length=100, verbose_name='secret')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('pool', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notice_targets', to='agents.pool', verbose_name='pool')),
                ('setting', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notice_targets', to='agents.launchsetting', verbose_name='launch setting')),
            ],
            options={
                'verbose_name': 'notification recipient',
                'verbose_name_plural': 'notification recipients',
                'ordering': ('pk',),
            },
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel', models.CharField(choices=[('email', 'e-mail'), ('webhook', 'webhook')], max_length=7, verbose_name='channel')),
                ('address', models.CharField(max_length=500, verbose_name='address')),
                ('state', models.CharField(choices=[('pending', 'pending'), ('sent', 'sent'), ('failed', 'failed')], default='pending', max_length=7, verbose_name='state')),
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('next_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='next attempt')),
                ('problem', models.TextField(blank=True, default='', verbose_name='problem')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='created')),
                ('sent_at', models.DateTimeField(null=True, verbose_name='sent')),
                ('transition', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='alerts.alerttransition')),
                ('trip', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='agents.breakertrip')),
                ('target', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='notices', to='alerts.noticetarget')),
            ],
            options={
                'verbose_name': 'notification',
                'verbose_name_plural': 'notifications',
                'ordering': ('-created_at', '-id'),
            },
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['state', 'severity', 'opened_at'], name='alerts_by_state'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['kind', 'state'], name='alerts_of_kind_by_state'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['kind', 'closed_at'], name='alerts_of_kind'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['-closed_at', '-id'], name='alerts_by_end'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['-opened_at', '-id'], name='alerts_by_start'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(condition=models.Q(('held', True)), fields=['kind'], name='alerts_held'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'closed'), _negated=True), fields=('kind', 'subject'), name='one_open_alert_per_cause'),
        ),
        migrations.AddConstraint(
            model_name='alertrule',
            constraint=models.UniqueConstraint(fields=('kind', 'pool'), name='one_alert_rule_per_pool'),
        ),
        migrations.AddConstraint(
            model_name='alertrule',
            constraint=models.UniqueConstraint(condition=models.Q(('pool', None)), fields=('kind',), name='one_alert_rule_of_the_site'),
        ),
        migrations.AddConstraint(
            model_name='noticetarget',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('pool__isnull', True), ('setting__isnull', False)), models.Q(('pool__isnull', False), ('setting__isnull', True)), _connector='OR'), name='notice_target_of_one_owner'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['next_at'], name='notices_to_send'),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.UniqueConstraint(fields=('trip', 'target'), name='one_notice_per_trip_and_target'),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.UniqueConstraint(fields=('transition', 'target'), name='one_notice_per_transition_and_target'),
        ),
    ]
