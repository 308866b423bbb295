"""A gunicorn worker whose threads get whole requests only, and never wait for a slow reader.

gthread gives a connection to a thread when its first bytes are there, and the thread reads the rest: as many
clients as there are threads, each with one byte of a body, stop the site. Here the poller of the process
reads heads and bodies, within bounds and deadlines; a thread begins when nothing is left to read. What a
reader does not take at once is kept, and sent by the poller when the thread is gone.
docs/reference/requests.md has the figures.

All of a connection belongs to the poller but between `enqueue_req` and `finish_request`, when it belongs to
one thread: no lock is needed. The framing of a request is decided once, by gunicorn's own parser."""

import errno
import selectors
import socket
import ssl
import time
from collections import Counter, deque
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any
from urllib.parse import unquote

from gunicorn.http.body import Body, ChunkedReader, LengthReader
from gunicorn.http.errors import LimitRequestHeaders
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from console.rest.body_limits import SMALL
from exposition import notify
from ma_site.requests import connection as bounds
from ma_site.requests.connection import READ, Connection, Stage, pieces, secured, tls_context
from ma_site.requests.stack import OF_A_THREAD, with_room


class Worker(ThreadWorker):
    """`waiting` holds what the poller has, the longest in its stage first."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting: dict[Connection, None] = {}
        self.line: deque[Connection] = deque()
        self.large = 0
        self.next_sweep = 0.0
        self.too_slow = self.made_room = 0

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        super().check_config(cfg, log)

    def init_process(self) -> None:
        # Read once: whoever renews a certificate restarts the web process.
        self.tls = tls_context(self.cfg)
        if notify.patience():
            Thread(target=self._ask_itself, name="watchdog", daemon=True).start()
        super().init_process()

    def _ask_itself(self) -> None:
        """A site that nobody asks is well where it answers itself; what answers feeds the watchdog."""
        host, port = self.cfg.address[0][:2]
        local = "127.0.0.1" if host in ("0.0.0.0", "") else host
        while True:
            time.sleep(notify.patience() / 4)
            with suppress(OSError), socket.create_connection((local, port), timeout=5) as plain:
                asking = plain
                if self.cfg.is_ssl:
                    context = ssl.create_default_context()
                    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                    asking = context.wrap_socket(plain)
                asking.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                asking.recv(1)
                asking.close()

    def get_thread_pool(self) -> Any:
        """Of threads that keep their room from one request to the next."""
        with_room(Thread.run, OF_A_THREAD)
        return super().get_thread_pool()

    # -- coming in -------------------------------------------------------------------------------------------

    def accept(self, listener: socket.socket) -> None:
        try:
            sock, client = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._make_room()
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        conn = Connection(self.cfg, secured(sock, self.tls), client, listener.getsockname())
        self.nr_conns += 1
        self._wait(conn, Stage.IDLE, bounds.HEAD_SECONDS)
        if self.nr_conns >= self.worker_connections:
            self._make_room()

    def _wait(self, conn: Connection, stage: Stage, seconds: float, *, polled: bool = True) -> None:
        """The connection is the poller's, in this stage, for so long at most."""
        self.waiting.pop(conn, None)
        self.waiting[conn] = None
        conn.stage, conn.deadline = stage, time.monotonic() + seconds
        if polled:
            writes = stage is Stage.ANSWER
            work = {Stage.ANSWER: self._send, Stage.LINGER: self._throw_away}.get(stage, self._read)
            event = selectors.EVENT_WRITE if writes else selectors.EVENT_READ
            try:
                self.poller.register(conn.sock, event, partial(work, conn))
            except KeyError:
                self.poller.modify(conn.sock, event, partial(work, conn))
            except (OSError, ValueError):
                self._drop(conn)

    def _release(self, conn: Connection) -> None:
        """It is no longer the poller's."""
        self.waiting.pop(conn, None)
        with suppress(KeyError, OSError, ValueError):  # it stood in line, or is closed
            self.poller.unregister(conn.sock)

    def _drop(self, conn: Connection) -> None:
        self._release(conn)
        self._give_place_up(conn)
        self.nr_conns -= 1
        conn.close()

    def _read(self, conn: Connection, _sock: Any = None) -> None:
        if conn not in self.waiting:
            return  # dropped in the same round of events
        try:
            data = conn.sock.recv(READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._drop(conn)
            return
        conn.incoming += data
        self._advance(conn)

    def _advance(self, conn: Connection) -> None:
        if conn.request is None:
            if conn.stage is Stage.IDLE:
                self._wait(conn, Stage.HEAD, bounds.HEAD_SECONDS)
            if self.tls is None and conn.incoming[:1] == bounds.TLS_HELLO:
                self._refuse_tls(conn)
            else:
                self._read_head(conn)
        elif len(conn.incoming) >= conn.length:
            self._hand_over(conn)

    def _refuse_tls(self, conn: Connection) -> None:
        self._release(conn)
        conn.refused = True
        try:
            conn.sock.sendall(bounds.IN_CLEAR)
        except OSError:
            self._drop(conn)
            return
        self._after_thread(conn, keep=False)

    def _read_head(self, conn: Connection) -> None:
        if conn.incoming[:2] == b"\r\n":
            del conn.incoming[:2]
        end = conn.incoming.find(b"\r\n\r\n", max(0, conn.searched - 3))
        conn.searched = len(conn.incoming)
        if end < 0 and len(conn.incoming) <= bounds.HEAD_MOST:
            return
        head = bytes(conn.incoming[: end + 4])
        del conn.incoming[: end + 4]
        conn.searched = 0
        try:
            if end < 0 or end > bounds.HEAD_MOST:
                raise LimitRequestHeaders("max buffer headers")
            conn.request = Request(self.cfg, IterUnreader([head]), conn.client)
        except Exception as error:
            self._release(conn)
            self.handle_error(None, conn.sock, conn.client, error)
            conn.refused = True
            self._after_thread(conn, keep=False)
            return
        self._begin_body(conn)

    # -- bodies ----------------------------------------------------------------------------------------------

    def _begin_body(self, conn: Connection) -> None:
        reader = conn.request.body.reader
        length = reader.length if isinstance(reader, LengthReader) else 0
        if isinstance(reader, ChunkedReader) or (length > SMALL and length > self._limit(conn.request)):
            self._hand_over_unread(conn)
        elif length > SMALL:
            conn.length = length
            self._ask_who_sends(conn)
        else:
            conn.length = length
            self._read_body(conn, bounds.BODY_SECONDS)

    def _limit(self, request: Any) -> int:
        from ma_site.requests.middleware import (
            limit_of_path,
        )  # needs the settings, which the master does not read

        return limit_of_path(unquote(request.path))

    def _read_body(self, conn: Connection, seconds: float) -> None:
        if len(conn.incoming) >= conn.length:
            self._hand_over(conn)
            return
        self._wait(conn, Stage.BODY, seconds)
        if conn.request._expected_100_continue and conn in self.waiting:
            try:
                conn.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            except OSError:
                self._drop(conn)

    def _ask_who_sends(self, conn: Connection) -> None:
        """A thread looks the token or the session up: strangers send nothing large."""
        from ma_site.requests.middleware import is_known_sender

        self._release(conn)
        asked = self.tpool.submit(is_known_sender, dict(conn.request.headers))
        asked.add_done_callback(lambda future: self.method_queue.defer(self._who_sends, conn, future))

    def _who_sends(self, conn: Connection, asked: "Future[bool]") -> None:
        from ma_site.requests.middleware import NOBODY_KNOWS

        unknown = asked.cancelled() or asked.exception() is not None
        if unknown or not asked.result():
            conn.request.headers = [pair for pair in conn.request.headers if pair[0] != "CONTENT-LENGTH"]
            if unknown:
                conn.request.headers.append((NOBODY_KNOWS, "1"))
            self._hand_over_unread(conn)
        elif self.large < bounds.LARGE_AT_ONCE:
            self._take_place(conn)
        else:
            self.line.append(conn)
            self._wait(conn, Stage.IN_LINE, bounds.IN_LINE_SECONDS, polled=False)

    def _take_place(self, conn: Connection) -> None:
        self.large += 1
        conn.large = True
        self._read_body(conn, bounds.BODY_SECONDS + (conn.length - SMALL) / bounds.SLOWEST_SENDER)

    def _give_place_up(self, conn: Connection) -> None:
        if not conn.large:
            return
        conn.large = False
        self.large -= 1
        while self.line:
            follower = self.line.popleft()
            if follower in self.waiting:
                self._take_place(follower)
                return

    def _hand_over_unread(self, conn: Connection) -> None:
        """The site answers what it thinks of such a request; the connection ends with that."""
        conn.refused, conn.length = True, 0
        conn.request.force_close()
        self._hand_over(conn)

    def _hand_over(self, conn: Connection) -> None:
        self._release(conn)
        request, length = conn.request, conn.length
        if length == len(conn.incoming):
            body, conn.incoming = conn.incoming, bytearray()
        else:
            body = conn.incoming[:length]
            del conn.incoming[:length]
        request.body = Body(LengthReader(IterUnreader(pieces(body)), length))
        request._expected_100_continue = False
        conn.parser = iter((request,))
        self.enqueue_req(conn)

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        """The body was read from the connection before: nothing of it is left there."""
        return bool(keepalive)

    # -- going out -------------------------------------------------------------------------------------------

    def finish_request(self, conn: Connection, future: "Future[Any]") -> None:
        keep = False
        notify.fed()
        if not future.cancelled() and future.exception() is None:
            keep = bool(future.result())
        conn.request = conn.parser = None
        conn.length = 0
        self._give_place_up(conn)
        self._after_thread(conn, keep=keep)

    def _after_thread(self, conn: Connection, *, keep: bool) -> None:
        conn.keep = keep
        if conn.sock.held:
            self._wait(conn, Stage.ANSWER, bounds.ANSWER_SECONDS + conn.sock.held / bounds.SLOWEST_READER)
            self._bound_answers()
        else:
            self._after_answer(conn)

    def _send(self, conn: Connection, _sock: Any = None) -> None:
        if conn not in self.waiting:
            return
        try:
            conn.sock.flush()
        except OSError:
            self._drop(conn)
            return
        if not conn.sock.held:
            self._after_answer(conn)

    def _bound_answers(self) -> None:
        """Whoever waits longest with its answer gives way."""
        held = [conn for conn in self.waiting if conn.stage is Stage.ANSWER]
        size = sum(conn.sock.held for conn in held)
        for conn in held:
            if size <= bounds.ANSWERS_HELD:
                return
            size -= conn.sock.held
            self.made_room += 1
            self._drop(conn)

    def _after_answer(self, conn: Connection) -> None:
        if conn.keep:
            seconds = self.cfg.keepalive if self.alive else min(self.cfg.keepalive, STOP_KEEPALIVE_LINGER)
            self._wait(conn, Stage.IDLE, seconds)
            if conn.incoming and conn in self.waiting:
                self._advance(conn)
            return
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(conn)
            return
        self._wait(conn, Stage.LINGER, bounds.REFUSED_SECONDS if conn.refused else bounds.LINGER_SECONDS)

    def _throw_away(self, conn: Connection, _sock: Any = None) -> None:
        if conn not in self.waiting:
            return
        try:
            data = conn.sock.recv(READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        conn.thrown_away += len(data)
        if not data or conn.thrown_away > bounds.LINGER_MOST:
            self._drop(conn)

    # -- bounds of all ---------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Makes room for one more: of the address that has most here, whoever waits longest goes. Known
        senders stay."""
        there = [conn for conn in self.waiting if not conn.large and conn.stage is not Stage.IN_LINE]
        if not there:
            return
        most, _count = Counter(conn.address for conn in there).most_common(1)[0]
        self.made_room += 1
        self._drop(next(conn for conn in there if conn.address == most))

    def _bound_bodies(self) -> None:
        """Bounds bodies: of strangers whoever has sent most gives way."""
        size = sum(len(conn.incoming) for conn in self.waiting)
        while size > bounds.BODIES_HELD:
            most = max(self.waiting, key=lambda conn: 0 if conn.large else len(conn.incoming))
            size -= len(most.incoming)
            self.made_room += 1
            self._drop(most)

    def murder_keepalived(self, force: bool = False) -> None:
        if force:
            for conn in list(self.waiting):
                self._drop(conn)

    def murder_pending(self) -> None:
        """Ends what is over its time."""
        now = time.monotonic()
        if now < self.next_sweep:
            return
        self.next_sweep = now + bounds.SWEEP_SECONDS
        for conn in [conn for conn in self.waiting if conn.deadline <= now]:
            if conn.stage in (Stage.HEAD, Stage.BODY, Stage.IN_LINE):
                self.too_slow += 1
                with suppress(OSError):
                    conn.sock.sendall(bounds.TOO_SLOW)
            self._drop(conn)
        self._bound_bodies()
        if self.too_slow or self.made_room:
            self.log.warning("closed: %s too slow, %s to free slots", self.too_slow, self.made_room)
            self.too_slow = self.made_room = 0

    def _cap_keepalive(self, deadline: float) -> None:
        for conn in self.waiting:
            if conn.stage is Stage.IDLE:
                conn.deadline = min(conn.deadline, deadline)
