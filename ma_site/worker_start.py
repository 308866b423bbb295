"""A worker provisions and moves messages: it never does so on another site's broker.

A broker that is away does not hold the worker up, for most of its tasks need none. Then a thread asks until the broker
answers, and ends the worker where it is foreign.
"""

import os
import signal
import sys
import threading

import structlog
from django.db import InterfaceError, OperationalError, close_old_connections

from agents.services.broker import management
from agents.services.broker_owner import ForeignBroker, require_own_broker
from broker.errors import BrokerError

log = structlog.get_logger(__name__)

ASK_AGAIN_SECONDS = 5.0
# Of sysexits.h: a configuration error. SystemExit passes Celery's signals, an Exception would only be logged.
EX_CONFIG = 78


def stay_only_on_own_broker() -> None:
    """Raises SystemExit."""
    try:
        if _is_own():
            return
    except ForeignBroker as foreign:
        print(foreign, file=sys.stderr, flush=True)
        raise SystemExit(EX_CONFIG) from foreign
    threading.Thread(target=_ask_until_known, name="broker-owner", daemon=True).start()


def _is_own() -> bool:
    """False where nobody can say it yet. Raises ForeignBroker."""
    try:
        require_own_broker(management())
    except (BrokerError, OperationalError, InterfaceError) as error:
        log.warning("nobody can say whose broker it is", reason=str(error))
        return False
    finally:
        close_old_connections()
    return True


def _ask_until_known(pause: float = ASK_AGAIN_SECONDS) -> None:
    waiting = threading.Event()
    try:
        while not waiting.wait(pause) and not _is_own():
            pass
    except ForeignBroker as foreign:
        log.error("the worker ends", reason=str(foreign))
        os.kill(os.getpid(), signal.SIGTERM)
