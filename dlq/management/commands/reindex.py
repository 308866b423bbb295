"""manage.py reindex: the index of words of dead letters, built again."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from dlq.search.rebuild import begin_rebuild, step

# Seconds between two lines of progress; and the share of a piece's time that others have the database.
TOLD_EVERY, SHARE_OF_OTHERS = 5.0, 0.5


class Command(BaseCommand):
    help = (
        "Rebuilds the full-text index of dead letters in small steps while the site runs. An interrupted "
        "rebuild continues automatically. On SQLite, text search misses older messages until it ends."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--again",
            action="store_true",
            help="start from the first message, even if a rebuild is in progress",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        rebuild = begin_rebuild(timezone.now(), again=options["again"])
        if rebuild.position:
            self.stdout.write(f"Continuing after message {rebuild.position}.")
        told = time.monotonic()
        while True:
            began = time.monotonic()
            # Where the worker did the last piece, there is none for us.
            rebuild = step(timezone.now()) or rebuild
            rebuild.refresh_from_db()
            if not rebuild.open:
                break
            if time.monotonic() - told >= TOLD_EVERY:
                told = time.monotonic()
                self.stdout.write(
                    f"{rebuild.letters} messages, up to number {rebuild.position} of {rebuild.last}"
                )
            time.sleep(min(0.1, (time.monotonic() - began) * SHARE_OF_OTHERS))
        self.stdout.write(f"The full-text index has been rebuilt: {rebuild.letters} messages.")
