"""manage.py export [KEY…]: pools, destinations, settings, schedules and groups as YAML, for git and for
`apply`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.manifests.document import dump
from agents.manifests.export import UnknownSettings, document


class Command(BaseCommand):
    help = "Prints pools, destinations, settings with their schedules, and groups as YAML for `apply`."

    def add_arguments(self, parser: CommandParser) -> None:
        # No option --settings: every command of Django has one, for its module.
        parser.add_argument(
            "keys", nargs="*", metavar="KEY", help="only these settings and their dependencies"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(dump(document(options["keys"])), ending="")
        except UnknownSettings as error:
            raise CommandError(str(error)) from error
