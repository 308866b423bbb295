"""manage.py record_backup: the site notes a backup that ./ma backup has made."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.site.backups import note_backup


class Command(BaseCommand):
    help = "Notes a backup. ./ma backup calls it; other tools that make backups may call it too."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "facts", help='JSON: {"made_at": "2026-01-31T02:00:00Z", "place": …, "size": bytes}'
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            facts = json.loads(options["facts"])
            note_backup(facts, timezone.now())
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(f"These are no facts of a backup: {error}") from error
