"""A site of before: beat's rows of schedules, to which a column of ours referred, go and nothing else
does."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from agents.models import Pool, Schedule
from tests.web.launching import delayed, scheduled

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

BEFORE, AFTER = ("agents", "0032_allowed_agents_of_a_pool"), ("agents", "0033_celerys_own_beat")
TASKS = "django_celery_beat_periodictask"


def beats_tables() -> set[str]:
    return {name for name in connection.introspection.table_names() if name.startswith("django_celery_beat_")}


def test_the_tables_of_beats_schedules_go_and_schedules_stay(
    pool: Pool, migrate: Callable[[str, str], object]
) -> None:
    schedule = scheduled(delayed(pool))
    migrate(*BEFORE)
    kind = ContentType.objects.create(app_label="django_celery_beat", model="periodictask")
    right = Permission.objects.create(content_type=kind, codename="change_periodictask", name="Can change")
    Group.objects.create(name="operators").permissions.add(right)
    MigrationRecorder(connection).record_applied("django_celery_beat", "0001_initial")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE django_celery_beat_crontabschedule (id integer PRIMARY KEY)")
        cursor.execute(
            f"CREATE TABLE {TASKS} (id integer PRIMARY KEY, "
            "crontab_id integer REFERENCES django_celery_beat_crontabschedule (id))"
        )
        cursor.execute("INSERT INTO django_celery_beat_crontabschedule VALUES (1)")
        cursor.execute(f"INSERT INTO {TASKS} VALUES (7, 1)")
        cursor.execute("UPDATE agents_schedule SET periodic_task_id = 7")

    migrate(*AFTER)

    assert beats_tables() == set()
    assert list(Schedule.objects.values_list("pk", "crontab")) == [(schedule.pk, schedule.crontab)]
    assert not ContentType.objects.filter(app_label="django_celery_beat").exists()
    assert Group.objects.get().permissions.count() == 0
    assert not MigrationRecorder(connection).migration_qs.filter(app="django_celery_beat").exists()
