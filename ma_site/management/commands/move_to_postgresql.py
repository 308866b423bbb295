"""manage.py move_to_postgresql: all of the site from SQLite to an empty PostgreSQL."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from ma_site.relocation import NotMoved, check_source, move, prepare_target, run_there
from ma_site.service_urls import parse_database


class Command(BaseCommand):
    help = (
        "Copies every table of a stopped site from SQLite to an empty PostgreSQL, ids kept, compares the "
        "rows of each, "
        "and builds the index of words there. The SQLite file stays as it is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("url", nargs="?", metavar="URL", help="postgresql://user:password@host:port/name")
        what.add_argument(
            "--url-file", metavar="FILE", help="a file with the URL, which no list of processes shows"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            url = options["url"] or Path(options["url_file"]).read_text("utf-8").strip()
            database = parse_database(url)
        except (OSError, ValueError) as error:
            raise CommandError(f"That is no database: {error}") from error
        now = timezone.now()
        try:
            check_source(now)
            prepare_target(database, url)
            moved = move(now)
        except NotMoved as error:
            raise CommandError(str(error)) from error
        width = max(len(table.name) for table in moved)
        self.stdout.write(f"{'table':{width}}  {'rows here':>10}  {'rows there':>10}  digest of the keys")
        for table in sorted(moved, key=lambda each: each.name):
            changed = f"  {table.changed} texts without NUL or lone surrogates" if table.changed else ""
            self.stdout.write(
                f"{table.name:{width}}  {table.rows:>10}  {table.rows:>10}  {table.digest:016x}{changed}"
            )
        self.stdout.write(
            f"{sum(table.rows for table in moved)} rows in {len(moved)} tables, all of them there."
        )
        done = run_there(url, "reindex")
        self.stdout.write(
            done.stdout.strip() if done.returncode == 0 else "The worker builds the index of words."
        )
        self.stdout.write("Start the site with MA_DATABASE_URL set to the new database.")
