"""manage.py move_to_postgresql: all of the site from SQLite to an empty PostgreSQL."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from ma_site.relocation import NotMoved, check_source, move, prepare_target, run_there
from ma_site.service_urls import parse_database


class Command(BaseCommand):
    help = (
        "Copies every table of a stopped site from SQLite to an empty PostgreSQL database, keeps ids, "
        "compares all rows, and builds the full-text index. The SQLite file stays unchanged."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("url", nargs="?", metavar="URL", help="postgresql://user:password@host:port/name")
        what.add_argument(
            "--url-file", metavar="FILE", help="file with the URL, to keep it out of process lists"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            url = options["url"] or Path(options["url_file"]).read_text("utf-8").strip()
            database = parse_database(url)
        except (OSError, ValueError) as error:
            raise CommandError(f"Invalid database URL: {error}") from error
        now = timezone.now()
        try:
            check_source(now)
            prepare_target(database, url)
            moved = move(now)
        except NotMoved as error:
            raise CommandError(str(error)) from error
        width = max(len(table.name) for table in moved)
        self.stdout.write(f"{'table':{width}}  {'SQLite':>10}  {'PostgreSQL':>10}  key digest")
        for table in sorted(moved, key=lambda each: each.name):
            changed = f"  {table.changed} texts cleaned of NUL and lone surrogates" if table.changed else ""
            self.stdout.write(
                f"{table.name:{width}}  {table.rows:>10}  {table.rows:>10}  {table.digest:016x}{changed}"
            )
        self.stdout.write(
            f"All {sum(table.rows for table in moved)} rows of {len(moved)} tables have been copied."
        )
        done = run_there(url, "reindex")
        self.stdout.write(
            done.stdout.strip() if done.returncode == 0 else "The worker builds the full-text index."
        )
        self.stdout.write("Start the site with MA_DATABASE_URL set to the new database.")
