"""A site over a real socket within the transaction of a test: what it changes goes with the test. It answers
one request at a time, while the test waits for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer
from django.db import DEFAULT_DB_ALIAS, connections
from django.test.testcases import QuietWSGIRequestHandler

from tests import slow_calls


@contextmanager
def served() -> Iterator[str]:
    """Its address. A request ends with the end of its connection; here that is the connection of the test."""
    connection = connections[DEFAULT_DB_ALIAS]
    own = {connection.alias: connection}
    server = ThreadedWSGIServer(("127.0.0.1", 0), QuietWSGIRequestHandler, connections_override=own)
    server.set_app(WSGIHandler())
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    connection.inc_thread_sharing()
    thread.start()
    try:
        with patch.object(connection, "close"), patch.object(connection, "close_if_unusable_or_obsolete"):
            yield f"http://127.0.0.1:{server.server_port}"
    finally:
        # The test still sends to it while it is in a transaction by then, which both have in common.
        of_others = [each for each in slow_calls.take() if "/deploy/remote/" not in each]
        server.shutdown()
        server.server_close()
        thread.join(10)
        connection.dec_thread_sharing()
    assert not of_others, "\n".join(of_others)
