"""manage.py erase: personal data of messages out of protocols, index, bin and dead-letter queues."""

import sys
from typing import Any
from uuid import uuid4

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from broker.port import BrokerError
from console.audit.log import record_refused
from dlq.cli.rest import person_named
from dlq.index.broker import letter_queues
from retention.erasure.operations import ACTION, ERASE, Erased, erase, would_erase
from retention.erasure.protocols import ErasureTarget

# Rows between two lines of progress.
TOLD_EVERY = 100_000


class Command(BaseCommand):
    help = (
        "Erases the data of messages with a key, or with a value of a property: texts, tracebacks, "
        "properties, bodies, notes, and the messages in dead-letter queues and in the trash. This cannot be "
        "undone. The rows stay as evidence under another key. Safe to repeat. Exit code 1: some data is "
        "left, with reasons."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--message-key", metavar="KEY", default="")
        what.add_argument("--property", metavar="NAME=VALUE", default="", help="exact value")
        parser.add_argument("--setting", metavar="KEY", default="", help="only messages of this setting")
        parser.add_argument("--dry-run", action="store_true", help="erase nothing; only count")
        parser.add_argument(
            "--as", dest="person", required=True, metavar="USER", help="user for the audit log"
        )
        parser.add_argument(
            "--reason",
            required=True,
            metavar="TEXT",
            help="reason for the audit log; must not contain the erased value",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        wanted, person = _wanted(options), person_named(options["person"])
        if not person.has_perm(ERASE):
            record_refused(ACTION, by=person, target=f"erased:{wanted.digest}", why="permission denied")
            raise CommandError(
                f"{person.get_username()} may not erase messages: the permission {ERASE} is missing."
            )
        if not options["reason"].strip():
            raise CommandError(
                "--reason is empty: it is the only description of the erased data in the audit log."
            )
        if wanted.secret in options["reason"]:
            raise CommandError(
                "The reason contains the value to erase, and the audit log keeps it: choose another text."
            )
        now, operation = timezone.now(), uuid4()
        try:
            if options["dry_run"]:
                erased = would_erase(wanted, now, self._seen())
            else:
                erased = erase(
                    wanted, letter_queues(), by=person, reason=options["reason"], operation=operation,
                    now=now,
                    seen=self._seen(),
                )  # fmt: skip
        except BrokerError as error:
            raise CommandError(
                f"The broker is unavailable: {error}. Run the command again: it continues."
            ) from error
        self._tell(erased, dry=options["dry_run"], operation=str(operation))

    def _seen(self) -> Any:
        looked_at = 0

        def seen(rows: int) -> None:
            nonlocal looked_at
            before, looked_at = looked_at, looked_at + rows
            if looked_at // TOLD_EVERY > before // TOLD_EVERY:
                self.stderr.write(f"{looked_at} rows checked")

        return seen

    def _tell(self, erased: Erased, *, dry: bool, operation: str) -> None:
        found = {kind: number for kind, number in sorted(erased.counts.items()) if number}
        verb = "would be erased" if dry else "erased"
        for kind, number in found.items():
            self.stdout.write(f"{kind}: {number} {verb}")
        if not found:
            self.stdout.write("No data found.")
        if not dry:
            self.stdout.write(f"operation {operation}")
        for why in sorted(erased.left):
            self.stderr.write(f"left: {why}")
        if erased.left:
            sys.exit(1)


def _wanted(options: dict[str, Any]) -> ErasureTarget:
    if options["message_key"]:
        return ErasureTarget(message_key=options["message_key"], setting=options["setting"])
    name, equals, value = options["property"].partition("=")
    if not equals or not name or not value:
        raise CommandError("--property must have the form NAME=VALUE; neither part may be empty.")
    return ErasureTarget(name=name, value=value, setting=options["setting"])
