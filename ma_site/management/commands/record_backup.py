"""manage.py record_backup: notes that a backup was made and read again, for *Health* and its alert."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from agents.models import ComponentCondition
from agents.site.components import BACKUP, note_state


class Command(BaseCommand):
    help = "Notes that a backup was made and checked."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("place", help="where it is")

    def handle(self, *args: Any, **options: Any) -> None:
        note_state(BACKUP, ComponentCondition.OK, timezone.now(), {"place": options["place"]})
