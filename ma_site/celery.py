"""Celery of the MA: short steps that may run twice. Rows in the database are the truth, never a task."""

import os
from typing import Any

from celery import Celery, signals

from console import old_database
from exposition import notify

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ma_site.settings")
# Celery's own: Django's checks of the source load every page, which takes a second. Tests run them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("ma_site")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect
def _keep_our_logging(**_: Any) -> None:
    """A receiver, so that Celery leaves the JSON logging of the settings as it is."""


@signals.worker_init.connect
@signals.beat_init.connect
def _refuse_other_database(**_: Any) -> None:
    """One that a newer version migrated while this one was away."""
    old_database.refuse(os.environ)


@signals.worker_init.connect
def _refuse_foreign_broker(**_: Any) -> None:
    """Before the worker takes its first task."""
    from ma_site.tasks import stay_only_on_own_broker

    stay_only_on_own_broker()


@signals.worker_ready.connect
def _serve_metrics(**_: Any) -> None:
    from console.hooks import process_begins

    process_begins("worker")
    notify.tell("READY=1")


@signals.task_postrun.connect
def _task_was_done(**_: Any) -> None:
    notify.fed()


@signals.beat_init.connect
def _beat_begins(**_: Any) -> None:
    notify.tell("READY=1")


@signals.after_task_publish.connect
def _task_was_sent(**_: Any) -> None:
    """In beat its work; a worker that sends one has done some, too."""
    notify.fed()
