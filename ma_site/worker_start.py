"""A worker provisions and moves messages: it never does so on another site's broker.

A broker that is away does not hold the worker up, for most of its tasks need none. A thread asks until the
broker answers, and then every few seconds whether it is this site's still. It ends the worker where it is
foreign.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable

import structlog
from django.db import InterfaceError, OperationalError, close_old_connections
from django.utils import timezone

from agents.site.broker_owner import ForeignBroker, note_owner, require_own_broker
from broker.port import BrokerError, Management
from console.broker import management

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
        log.warning("nobody can say whose broker it is", reason=str(error))
        return False
    finally:
        close_old_connections()
    return True


def _keep_asking(known: bool, pause: float = ASK_AGAIN_SECONDS) -> None:
    """`known`: the broker was this site's before, so whoever has it now has taken it over."""
    waiting = threading.Event()
    try:
        while not waiting.wait(pause):
            known = _is_own(_note if known else require_own_broker) or known
    except ForeignBroker as foreign:
        log.error("the worker ends", reason=str(foreign))
        os.kill(os.getpid(), signal.SIGTERM)


def _note(management: Management) -> None:
    note_owner(management, timezone.now())
