"""One management connection per process, made when it is first needed."""

import os
import threading

from django.conf import settings

from broker.port import Management

_lock = threading.Lock()
_connection: Management | None = None
_process = 0


def management() -> Management:
    """Safe between threads; a forked process makes its own (two readers of one reply queue would take each other's)."""
    global _connection, _process
    with _lock:
        from broker.stomp_adapter import StompManagement

        if _connection is None or _process != os.getpid():
            _connection, _process = StompManagement(settings.MA_BROKER_STOMP, reply_queue()), os.getpid()
        return _connection


def reply_queue() -> str:
    return f"MA.reply.{os.getpid()}"
