"""Celery's own beat: the tables of django-celery-beat go, with what Django knows of their models."""

from typing import Any

from django.db import migrations
from django.db.migrations.recorder import MigrationRecorder

APP = 'django_celery_beat'
# What refers to others comes first.
TABLES = ('periodictask', 'periodictasks', 'intervalschedule', 'crontabschedule', 'solarschedule', 'clockedschedule')


def drop_tables(apps: Any, editor: Any) -> None:
    there = editor.connection.introspection.table_names()
    for table in (f'{APP}_{name}' for name in TABLES):
        if table in there:
            editor.execute(editor.sql_delete_table % {'table': editor.quote_name(table)})


def forget_models(apps: Any, editor: Any) -> None:
    apps.get_model('contenttypes', 'ContentType').objects.filter(app_label=APP).delete()
    MigrationRecorder(editor.connection).migration_qs.filter(app=APP).delete()


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0032_allowed_agents_of_a_pool'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        migrations.RemoveField(model_name='schedule', name='periodic_task'),
        migrations.RunPython(drop_tables, migrations.RunPython.noop),
        migrations.RunPython(forget_models, migrations.RunPython.noop),
    ]
