"""Commands of a site, each in a process of its own. One process loads Django, which takes seconds, and forks
them."""

import atexit
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
OUTPUTS = {1: "out", 2: "err"}
STOP_SECONDS = 20


# What differs between tests, and between sites that share a broker and a server of databases.
OWN = ("MA_DATABASE_URL", "MA_DATA", "KMA_DATA", "PYTEST_CURRENT_TEST")
_hosts: "dict[frozenset[tuple[str, str]], subprocess.Popen[str]]" = {}


class Forked:
    """All of them get this environment. What they need of processors is counted at the end of the session."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)

    def run(self, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        """As `manage.py ARGUMENTS`, with more in its environment."""
        with tempfile.TemporaryDirectory(prefix="ma-forked-") as folder:
            pid = self._ask([folder, arguments, self._environ | environ])
            status = self._ask([pid, 0])
            out, err = ((Path(folder) / name).read_text() for name in OUTPUTS.values())
        return subprocess.CompletedProcess(arguments, status, out, err)

    def start(self, *arguments: str) -> "Started":
        """The command runs beside the test."""
        folder = Path(tempfile.mkdtemp(prefix="ma-forked-"))
        return Started(self._ask, self._ask([str(folder), arguments, self._environ]), folder)

    @contextmanager
    def running(self, *arguments: str) -> Iterator[None]:
        """The command runs beside what is done meanwhile. Then it is asked to stop, and does."""
        process = self.start(*arguments)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            process.kill()
            assert process.poll() == 0, process.said()

    def _ask(self, request: list[Any]) -> Any:
        host = _host(self._environ)
        assert host.stdin is not None and host.stdout is not None
        host.stdin.write(json.dumps(request) + "\n")
        host.stdin.flush()
        return json.loads(host.stdout.readline())


class Started:
    """A process that the host has forked, as subprocess.Popen has it."""

    def __init__(self, ask: Callable[[list[Any]], Any], pid: int, folder: Path) -> None:
        self._ask, self._pid, self._folder = ask, pid, folder
        weakref.finalize(self, shutil.rmtree, folder)
        self._status: int | None = None

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        if self._status is None:
            self._status = self._ask([self._pid, os.WNOHANG])
        return self._status

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self._pid, number)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)
            self._status = self._ask([self._pid, 0])

    def said(self) -> str:
        """All that it has printed until now."""
        files = (self._folder / name for name in OUTPUTS.values())
        return "".join(file.read_text() for file in files if file.exists())


def _host(environ: Mapping[str, str]) -> "subprocess.Popen[str]":
    key = frozenset((name, value) for name, value in environ.items() if name not in OWN)
    key |= {("kind of database", environ["MA_DATABASE_URL"].partition(":")[0])}
    if key not in _hosts:
        host = _hosts[key] = subprocess.Popen(
            [sys.executable, "-m", "tests.dlq.forked"], env=dict(environ), cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        atexit.register(_end, host)
    return _hosts[key]


def _end(host: "subprocess.Popen[str]") -> None:
    assert host.stdin is not None
    with host:
        host.stdin.close()


def _become(folder: str, arguments: list[str], environ: dict[str, str]) -> None:
    """In the child. Nobody has asked the database yet."""
    from django.conf import settings

    from ma_site.service_urls import parse_database

    for number, name in OUTPUTS.items():
        file = os.open(Path(folder) / name, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.environ.update(environ)
    asked = parse_database(environ["MA_DATABASE_URL"])
    settings.DATABASES["default"].update({name: value for name, value in asked.items() if name != "OPTIONS"})
    sys.argv = ["manage.py", *arguments]


def _end_as_the_interpreter(command: Callable[[], None]) -> NoReturn:
    """Runs it and ends the process, without freeing what the fork shares: half a second of copies of
    memory."""
    status: object = 0
    try:
        command()
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    if not isinstance(status, int | None):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


def main() -> None:
    import django

    django.setup()
    import ma_site.urls  # noqa: F401  # and all pages with it

    gc.collect()
    gc.freeze()  # a collection in a child would copy all that it shares
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_wait(*request) if len(request) == 2 else _fork(*request)), flush=True)


def _fork(folder: str, arguments: list[str], environ: dict[str, str]) -> int:
    """The id of the process."""
    from django.core.management import execute_from_command_line

    child = os.fork()
    if not child:
        _become(folder, arguments, environ)
        _end_as_the_interpreter(lambda: execute_from_command_line(sys.argv))
    return child


def _wait(pid: int, options: int) -> int | None:
    """Its exit code; None while it runs, where the options do not wait."""
    ended, status = os.waitpid(pid, options)
    return os.waitstatus_to_exitcode(status) if ended else None


if __name__ == "__main__":
    main()
