"""manage.py create_server NAME: the server of a KMA and a new token for it."""

import os
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.models import Server
from agents.services.tokens import issue_server_token


class Command(BaseCommand):
    help = "Creates a server if there is none of this name, and issues a token. The one before it stays valid."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--token-file", type=Path, help="write the token here, mode 600, instead of printing it")

    def handle(self, *args: Any, **options: Any) -> None:
        server = _server(options["name"])
        path: Path | None = options["token_file"]
        secret = issue_server_token(server, now=timezone.now())
        if path is None:
            self.stdout.write(secret)
            return
        try:
            write_secret(path, secret)
        except OSError as error:
            raise CommandError(f"The token file cannot be written: {error}") from error
        self.stdout.write(f"{server.name}: token written to {path}")


def _server(name: str) -> Server:
    server = Server.objects.filter(name=name).first()
    if server is None:
        server = Server(name=name)
        try:
            server.full_clean()
        except ValidationError as error:
            raise CommandError(f"{name!r} is not a server name: {' '.join(error.messages)}") from error
        server.save()
    return server


def write_secret(path: Path, secret: str) -> None:
    """Whole or not at all, and never readable by others in between."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(f"{secret}\n")
    new.replace(path)
