"""manage.py prepare: what `./ma up` asks of the site before its processes start. Loading the site takes
seconds, so all of it is done by two processes, one before the broker answers and one after."""

import hashlib
import json
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser, OutputWrapper

# -- the static files as browsers get them: collected, named by their content and compressed -----------------


STAMP = ".collected"
MANIFEST = "staticfiles.json"


def collect(stdout: OutputWrapper) -> None:
    """Does nothing where all is there already: compressing takes seconds of every start."""
    stamp = _root() / STAMP
    sources = _digest_of_sources()
    if stamp.exists() and stamp.read_text() == sources and _whole():
        return
    # Not believed any more from here on; the new one comes last, so that an interrupted start begins again.
    stamp.unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, stdout=stdout)
    stamp.write_text(sources)


def _root() -> Path:
    return Path(settings.STATIC_ROOT)


def _digest_of_sources() -> str:
    """Returns a digest of the files, and of what turns them into those that are served."""
    made_by = (
        version("django"),
        version("whitenoise"),
        settings.STATIC_URL,
        settings.STORAGES["staticfiles"],
    )
    digest = hashlib.sha256(repr(made_by).encode())
    for finder in get_finders():
        for name, storage in sorted(finder.list([]), key=lambda each: each[0]):
            digest.update(
                f"{name}\0".encode() + hashlib.sha256(Path(storage.path(name)).read_bytes()).digest()
            )
    return digest.hexdigest()


def _whole() -> bool:
    """Returns whether no file is missing that a page may name."""
    try:
        named = json.loads((_root() / MANIFEST).read_text())["paths"].values()
    except (OSError, ValueError, KeyError):
        return False
    return all((_root() / name).exists() for name in named)


PARTS = ("database", "content")


class Command(BaseCommand):
    help = (
        "database: applies migrations and collects static files. content: claims the broker, provisions "
        "every setting, creates the demo (--demo) and server tokens (--token). Safe to repeat. Exit code 3 "
        "if the broker belongs to another site."
    )
    requires_migrations_checks = False
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("part", choices=PARTS)
        parser.add_argument(
            "--adopt-broker", action="store_true", help="take the broker over from another site"
        )
        parser.add_argument("--reason", default="", help="reason for the audit log")
        parser.add_argument("--demo", action="store_true")
        parser.add_argument("--servers", default="", help="servers of the demo, comma-separated")
        parser.add_argument(
            "--password-file", default="", help="file for the initial password of the demo's administrator"
        )
        parser.add_argument(
            "--token",
            nargs=2,
            action="append",
            default=[],
            metavar=("SERVER", "FILE"),
            help="create a server token if the file or the server is missing",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["part"] == "database":
            call_command("migrate", interactive=False, stdout=self.stderr)
            collect(self.stderr)
        else:
            self._content(options)

    def _content(self, options: dict[str, Any]) -> None:
        """Only what a person has to read goes to standard output."""
        call_command(
            "claim_broker", adopt=options["adopt_broker"], reason=options["reason"], stdout=self.stderr
        )
        # A setting that the broker refuses must not keep the site away that shows why.
        call_command("provision", keep_going=True, stdout=self.stderr)
        if options["demo"]:
            wanted = {"servers": options["servers"], "password_file": options["password_file"]}
            call_command("create_demo", **wanted, stdout=self.stdout)
        self._create_tokens(options["token"])

    def _create_tokens(self, wanted: Iterable[tuple[str, str]]) -> None:
        for server, file in wanted:
            told = {"stdout": self.stderr, "stderr": self.stderr}
            call_command("create_server", server, "--token-file", file, "--keep", **told)
