"""manage.py demo_history: makes the demo's made-up month; --remove takes all of it away."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from contract.names import HISTORY_KEY
from ma_site.demo import make_demo_pool, make_history, remove_history


class Command(BaseCommand):
    help = "Generates a month of demo failures for Insights, in a separate setting that other figures ignore."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--remove", action="store_true", help="delete the generated data")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["remove"]:
            removed = remove_history()
            self.stdout.write(
                f"{HISTORY_KEY} has been removed." if removed else f"{HISTORY_KEY} does not exist."
            )
            return
        made = make_history(make_demo_pool(), timezone.now())
        self.stdout.write(f"{HISTORY_KEY} has been created." if made else f"{HISTORY_KEY} exists already.")
