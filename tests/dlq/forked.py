"""Commands of a site, each in a process of its own. One process loads Django, which takes seconds, and forks them."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUTPUTS = {1: "out", 2: "err"}


# What differs between tests, and between sites that share a broker and a server of databases.
OWN = ("MA_DATABASE_URL", "MA_DATA", "KMA_DATA", "PYTEST_CURRENT_TEST")
_hosts: "dict[frozenset[tuple[str, str]], subprocess.Popen[str]]" = {}


class Forked:
    """All of them get this environment. What they need of processors is counted at the end of the session."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)

    def run(self, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        """As `manage.py ARGUMENTS`, with more in its environment."""
        host = _host(self._environ)
        assert host.stdin is not None and host.stdout is not None
        with tempfile.TemporaryDirectory(prefix="ma-forked-") as folder:
            host.stdin.write(json.dumps([folder, arguments, self._environ | environ]) + "\n")
            host.stdin.flush()
            status = int(host.stdout.readline())
            out, err = ((Path(folder) / name).read_text() for name in OUTPUTS.values())
        return subprocess.CompletedProcess(arguments, status, out, err)


def _host(environ: Mapping[str, str]) -> "subprocess.Popen[str]":
    key = frozenset((name, value) for name, value in environ.items() if name not in OWN)
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

    from ma_site.database_url import parse_database

    for number, name in OUTPUTS.items():
        file = os.open(Path(folder) / name, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.environ.update(environ)
    settings.DATABASES["default"]["NAME"] = parse_database(environ["MA_DATABASE_URL"])["NAME"]
    sys.argv = ["manage.py", *arguments]


def main() -> None:
    import django
    from django.core.management import execute_from_command_line

    django.setup()
    import ma_site.urls  # noqa: F401  # and all pages with it

    for line in sys.stdin:
        folder, arguments, environ = json.loads(line)
        child = os.fork()
        if not child:
            _become(folder, arguments, environ)
            execute_from_command_line(sys.argv)
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
