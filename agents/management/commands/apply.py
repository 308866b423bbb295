"""manage.py apply FILE: makes pools, destinations, settings, schedules and groups as the file says."""

import sys
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.manifests.apply import Manner, Outcome, apply
from agents.manifests.document import LARGEST_BYTES, Rejected, document_of, load

# Exit status of a dry run that would change something, as of the remote command.
CHANGES = 2


class Command(BaseCommand):
    help = (
        "Applies a YAML file to the site, completely or not at all. Objects and fields that the file does "
        "not name stay unchanged. Applying it twice changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="YAML file as printed by `export`; - reads standard input")
        parser.add_argument(
            "--dry-run", action="store_true", help="only show changes; exit code 2 if there are any"
        )
        parser.add_argument(
            "--prune", action="store_true", help="delete objects of these pools that the file does not name"
        )
        parser.add_argument("--by", metavar="USER", help="user name for the history")

    def handle(self, *args: Any, **options: Any) -> None:
        by = _person(options["by"]) if options["by"] else None
        try:
            document = document_of(load(_read(options["file"])))
            how = Manner(dry_run=options["dry_run"], prune=options["prune"])
            outcome = apply(document, by, timezone.now(), how)
        except Rejected as error:
            lines = [f"{_called(options['file'])}: {problem}" for problem in error.problems]
            raise CommandError("\n".join([*lines, "Nothing was stored."])) from error
        self._tell(outcome, options["dry_run"])
        if outcome.refused:
            lines = [f"{_called(options['file'])}: {problem}" for problem in outcome.refused]
            stored = "Refused:" if how.dry_run else "Stored, except for what was refused:"
            raise CommandError("\n".join([stored, *lines, "Correct the cause, then apply the file again."]))
        if how.dry_run and outcome.changes:
            sys.exit(CHANGES)

    def _tell(self, outcome: Outcome, dry_run: bool) -> None:
        for change in outcome.changes:
            self.stdout.write(str(change))
        if outcome.withheld:
            will = "would not be" if dry_run else "is not"
            self.stdout.write(
                f"{', '.join(outcome.withheld)}: {will} sent to servers: the pool does not allow the agent."
            )
        count = len(outcome.changes)
        if not count:
            self.stdout.write("Nothing to change.")
        elif dry_run:
            self.stdout.write(f"{count} change{'s' * (count > 1)} to make; nothing was stored.")
        else:
            self.stdout.write(f"{count} change{'s' * (count > 1)} made.")


def _called(name: str) -> str:
    return "standard input" if name == "-" else name


def _read(name: str) -> bytes:
    """One byte more than is allowed tells a file that is too large."""
    if name == "-":
        return sys.stdin.buffer.read(LARGEST_BYTES + 1)
    try:
        with Path(name).open("rb") as file:
            return file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from error


def _person(name: str) -> User:
    person = User.objects.filter(username=name, is_active=True).first()
    if person is None:
        raise CommandError(f"There is no active user {name!r}.")
    return person
