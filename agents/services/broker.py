"""One management connection per process, made when it is first needed."""

import os
import re
import socket
import threading

from django.conf import settings

from broker.port import Management
from broker.stomp_adapter import StompManagement

# Pages wait for it: an answer normally takes milliseconds.
TIMEOUT_SECONDS = 10.0

_lock = threading.Lock()
_connection: Management | None = None
_process = 0


def management() -> Management:
    """Safe between threads; a forked process makes its own (two readers of one reply queue take each
    other's)."""
    global _connection, _process
    with _lock:
        if _connection is None or _process != os.getpid():
            _connection = StompManagement(settings.MA_BROKER_STOMP, reply_queue(), TIMEOUT_SECONDS)
            _process = os.getpid()
        return _connection


def reply_queue() -> str:
    """One per process; the broker deletes it when the process is gone (address settings of MA.reply.#)."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())
    return f"MA.reply.{host}-{os.getpid()}"
