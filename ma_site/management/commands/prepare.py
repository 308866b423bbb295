"""manage.py prepare: what `./ma up` asks of the site before its processes start. Loading the site takes
seconds, so all of it is done by two processes, one before the broker answers and one after."""

from collections.abc import Iterable
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from ma_site import static_files

PARTS = ("database", "content")


class Command(BaseCommand):
    help = (
        "database: migrations and static files. content: claims the broker, provisions every setting, makes "
        "the demo "
        "(--demo) and tokens of servers (--token). Each may be repeated at any time. Exit code 3 where the "
        "broker "
        "belongs to another site."
    )
    requires_migrations_checks = False
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("part", choices=PARTS)
        parser.add_argument(
            "--adopt-broker", action="store_true", help="take the broker over from another site"
        )
        parser.add_argument("--reason", default="", help="for the audit")
        parser.add_argument("--demo", action="store_true")
        parser.add_argument("--servers", default="", help="of the demo, with commas")
        parser.add_argument(
            "--password-file", default="", help="keeps the first password of the demo's administrator"
        )
        parser.add_argument(
            "--token",
            nargs=2,
            action="append",
            default=[],
            metavar=("SERVER", "FILE"),
            help="a new token of a server",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["part"] == "database":
            call_command("migrate", interactive=False, stdout=self.stderr)
            static_files.collect(self.stderr)
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
            call_command(
                "create_server", server, "--token-file", file, stdout=self.stderr, stderr=self.stderr
            )
