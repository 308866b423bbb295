"""manage.py create_server NAME: the server of a KMA and a new token for it."""

from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from agents.models import Server, ServerToken
from agents.servers.admission import issue_server_token, write_draft
from console.audit.log import account_of, record
from console.audit.saves import saving
from console.models import SERVER_PREFIX, new_secret


class Command(BaseCommand):
    help = "Creates a server unless it exists, and issues a token. The previous token stays valid."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--token-file", type=Path, help="write the token to this file (mode 600) instead of printing it"
        )
        parser.add_argument(
            "--keep", action="store_true", help="do nothing if both the file and the server exist"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        server, existed = _server(options["name"])
        path: Path | None = options["token_file"]
        if options["keep"] and existed and path and path.exists():
            return
        before = _valid(server)
        secret = new_secret(SERVER_PREFIX)
        # Before the token is valid: one that is in no file would end an older one, which a KMA may use.
        draft = _draft(path, secret) if path else None
        now, target = timezone.now(), f"server:{server.name}"
        with transaction.atomic():
            issue_server_token(server, now=now, secret=secret)
            record("token.issue", by=None, now=now, target=target, detail=account_of(None))
        if existed:
            self.stderr.write(_printed(server, before))
        if path is None or draft is None:
            self.stdout.write(secret)
            return
        try:
            draft.replace(path)
        except OSError as error:
            raise CommandError(
                f"The token file cannot be written: {error}. The new token is in {draft}."
            ) from error
        self.stdout.write(f"{server.name}: token written to {path}")


def _draft(path: Path, secret: str) -> Path:
    try:
        return write_draft(path, secret)
    except OSError as error:
        raise CommandError(f"The token file cannot be written: {error}. No token was issued.") from error


def _valid(server: Server) -> int:
    return ServerToken.objects.filter(server=server, revoked_at=None).count()


def _printed(server: Server, before: int) -> str:
    """Writes the rest to stderr: a script reads the token alone."""
    after = _valid(server)
    tokens = f"{after} valid token" + ("s" if after > 1 else "")
    revoked = before + 1 - after
    lost = {0: "", 1: "; the oldest was revoked"}.get(revoked, f"; the {revoked} oldest were revoked")
    return f"The server {server.name} already existed. It now has {tokens}{lost}."


def _server(name: str) -> tuple[Server, bool]:
    """The server, and whether it was there before."""
    server = Server.objects.filter(name=name).first()
    existed = server is not None
    if server is None:
        server = Server(name=name)
        try:
            server.full_clean()
        except ValidationError as error:
            raise CommandError(f"{name!r} is not a server name: {' '.join(error.messages)}") from error
        with saving(server, None):
            server.save()
    return server, existed
