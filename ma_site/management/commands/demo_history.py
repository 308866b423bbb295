"""manage.py demo_history: makes the demo's made-up month; --remove takes all of it away."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from contract.names import HISTORY_KEY
from ma_site.demo import make_demo_pool, make_history, remove_history


class Command(BaseCommand):
    help = "Makes a month of made-up failures for Insights, in a setting of its own. It counts nowhere else."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--remove", action="store_true", help="take all of it away again")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["remove"]:
            removed = remove_history()
            self.stdout.write(f"{HISTORY_KEY} is removed." if removed else f"There is no {HISTORY_KEY}.")
            return
        made = make_history(make_demo_pool(), timezone.now())
        self.stdout.write(f"{HISTORY_KEY} is made." if made else f"{HISTORY_KEY} is there already.")
