"""Celery tasks of the whole site: short steps for a worker, which begins on its own broker alone. Each may
run twice; the rows say what is still to do. When each runs is in the settings; those of dead letters are
in `dlq.tasks`."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from itertools import chain

import structlog
from celery import shared_task
from django.db import InterfaceError, OperationalError, close_old_connections
from django.utils import timezone

from agents.activations.drains import watch_drains
from agents.destinations.policies import watch_policies
from agents.provisioning.provision import provision_setting
from agents.provisioning.subscriptions import watch_subscriptions
from agents.reconciler import tend
from agents.schedules.tick import tick
from agents.site import certificates
from agents.site.broker_owner import ForeignBroker, note_owner, require_own_broker
from agents.site.components import measure
from alerts import deadman
from alerts.evaluation import evaluate_all
from alerts.notices.delivery import send_due
from alerts.notices.events import watch_dead_letters
from broker.port import BrokerError, Management
from console import hooks
from console.broker import management
from console.jobs.engine import RUN_TASK, kind_of, run, start_due
from failures.error_groups.regressions import forget_versions
from failures.error_groups.rollup import fold_all, forget_hours
from failures.protocols import properties
from insights.archive.planning import settle_all
from insights.runs import reaper
from ma_site import hosts
from ma_site.requests.sign_in import forget_old_counters
from metrics import rollup
from metrics.sampling import sample
from retention.worker import run_retention_turn

# That one task works before it lets others have the worker.
PROPERTIES_SECONDS = 5.0


@shared_task(name=RUN_TASK)
def run_job(kind: str, pk: str) -> None:
    """Works on a job for a while, unless somebody else does."""
    run(next(each for each in chain(*hooks.job_workers()) if kind_of(each.model) == kind), pk, timezone.now())


@shared_task(name="console.start_jobs")
def start_jobs() -> None:
    """Jobs of every kind that nobody works on."""
    for worker in chain(*hooks.job_workers()):
        start_due(worker, timezone.now())


@shared_task(name="agents.tend")
def tend_task() -> None:
    tend(timezone.now())


@shared_task(name="agents.watch_drains")
def watch_drains_task() -> None:
    watch_drains(timezone.now())


@shared_task(name="agents.watch_subscriptions")
def watch_subscriptions_task() -> None:
    watch_subscriptions(timezone.now())


@shared_task(name="agents.watch_policies")
def watch_policies_task() -> None:
    watch_policies(timezone.now())


@shared_task(name="agents.provision")
def provision(setting_id: int) -> None:
    provision_setting(setting_id)


@shared_task(name="agents.tick")
def tick_task(schedule_id: int) -> None:
    """Starts when a window begins: reading all schedules would find it some seconds late."""
    tick(schedule_id, timezone.now())


@shared_task(name="failures.fold")
def fold_task() -> None:
    fold_all(timezone.now())
    forget_hours(timezone.now())
    forget_versions(timezone.now())


@shared_task(name="failures.index_properties")
def index_properties_task() -> None:
    """Properties of protocols that were stored before there was an index of them; a while at a time."""
    end = time.monotonic() + PROPERTIES_SECONDS
    while properties.step(timezone.now()) and time.monotonic() < end:
        pass


@shared_task(name="alerts.send_notices")
def send_notices_task() -> None:
    send_due(timezone.now())


@shared_task(name="alerts.evaluate")
def evaluate_task() -> None:
    now = timezone.now()
    evaluate_all(now)
    watch_dead_letters(now)
    deadman.ping(now)


@shared_task(name="insights.settle")
def settle_task() -> None:
    """Retention deletes what is in settled blocks: it need not wait for the next run."""
    settle_all(timezone.now())


@shared_task(name="insights.pipeline")
def pipeline_task() -> None:
    """Begins the nightly run, starts the process of one that waits, ends one whose process is gone."""
    reaper.tend(timezone.now())


@shared_task(name="metrics.fold")
def fold_figures_task() -> None:
    rollup.fold_all(timezone.now())


@shared_task(name="metrics.pack")
def pack_figures_task() -> None:
    """Hours that are over; then what is older than it is kept."""
    rollup.pack_all(timezone.now())
    rollup.forget_all(timezone.now())


@shared_task(name="metrics.sample")
def sample_queues_task() -> None:
    """Beat asks more often than once in a minute: one of these gets through."""
    sample(timezone.now())


@shared_task(name="retention.run")
def retention_task() -> None:
    """Beat asks often; mostly there is nothing to do yet."""
    run_retention_turn(timezone.now())


@shared_task(name="ma_site.measure")
def measure_components() -> None:
    now = timezone.now()
    measure(now)
    certificates.look(now)
    forget_old_counters(now)


# -- a worker provisions and moves messages: it never does so on another site's broker -----------------------
# A broker that is away does not hold the worker up, for most of its tasks need none. A thread asks until
# the broker answers, and then every few seconds whether it is this site's still. It ends the worker where
# it is foreign.


log = structlog.get_logger(__name__)

ASK_AGAIN_SECONDS = 5.0
# Of sysexits.h: a configuration error. SystemExit passes Celery's signals, an Exception would only be logged.
EX_CONFIG = 78


def stay_only_on_own_broker() -> None:
    """Raises SystemExit."""
    try:
        known = _is_own(require_own_broker)
    except ForeignBroker as foreign:
        print(foreign, file=sys.stderr, flush=True)
        raise SystemExit(EX_CONFIG) from foreign
    threading.Thread(target=_keep_asking, args=(known,), name="broker-owner", daemon=True).start()


def _is_own(ask: Callable[[Management], object]) -> bool:
    """False where nobody can say it yet. Raises ForeignBroker."""
    try:
        ask(management())
    except (BrokerError, OperationalError, InterfaceError) as error:
        log.warning("owner of the broker unknown", reason=str(error))
        return False
    finally:
        close_old_connections()
    return True


def _keep_asking(known: bool, pause: float = ASK_AGAIN_SECONDS) -> None:
    """`known`: the broker was this site's before, so whoever has it now has taken it over."""
    waiting, noted = threading.Event(), 0.0
    try:
        while not waiting.wait(pause):
            if time.monotonic() >= noted + hosts.EVERY.total_seconds():
                noted = time.monotonic() if _is_noted() else noted
            known = _is_own(_note if known else require_own_broker) or known
    except ForeignBroker as foreign:
        log.error("worker stops", reason=str(foreign))
        os.kill(os.getpid(), signal.SIGTERM)


def _is_noted() -> bool:
    try:
        hosts.note_host(timezone.now())
    except (OperationalError, InterfaceError) as error:
        log.warning("host not noted", reason=str(error))
        return False
    return True


def _note(management: Management) -> None:
    note_owner(management, timezone.now())
