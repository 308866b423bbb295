"""manage.py dlq: dead letters for scripts and for the night. Listing and exporting; the rest is in
dlq.cli."""

import os
import sys
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from console.exports import FORMATS, Row, plain
from dlq import exports
from dlq.cli import filters, jobs, rest, terminal
from dlq.cli.rest import Refused, print_json
from dlq.dead_letters.masks import Masks
from dlq.exports import record_export
from dlq.models import DeadLetter
from dlq.search.visibility import letters_for
from failures.models import FailureProtocol

LONGEST_LIST = 1000
PROTOCOLS_SHOWN = 20
PROTOCOL = (
    "id",
    "occurred_at",
    "server_name",
    "attempt",
    "outcome",
    "exception_type",
    "exception_text",
    "place",
)


class Command(BaseCommand):
    help = (
        "Lists, shows and exports dead letters, and runs the operations of the REST interface on them. Exit "
        "codes: 1 refused or failed, 3 an operator must decide, 130 waiting was interrupted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="command", required=True)
        _list_arguments(actions.add_parser("list", help="list dead letters, newest first"))
        show = actions.add_parser(
            "show",
            help="show one message and its failure protocols; without ID the newest that matches the filter",
        )
        show.add_argument("id", type=int, nargs="?", metavar="ID")
        show.add_argument("--json", action="store_true")
        filters.add_filter_arguments(show)
        jobs.add_job_commands(actions)
        rest.add_query_commands(actions)
        rest.add_import_command(actions)
        _export_arguments(
            actions.add_parser(
                "export",
                help="export as CSV or JSON lines, newest first; with --bodies JSON lines include properties",
            )
        )

    def handle(self, *args: Any, **options: Any) -> None:
        actions = {"list": self._list, "show": self._show, "export": self._export}
        try:
            if run := options.get("run"):
                run(self, options)
            else:
                actions[options["command"]](options)
        except Refused as refused:
            if options.get("json"):
                print_json(self, refused.told)
            raise
        except OperationalError as error:
            raise CommandError(f"Database error: {' '.join(str(error).split())}") from error

    def _list(self, options: dict[str, Any]) -> None:
        limit, before = options["limit"], options["before"]
        if not 1 <= limit <= LONGEST_LIST:
            raise CommandError(f"--limit must be between 1 and {LONGEST_LIST}.")
        found = filters.selection_of(options).numbers(None if before is None else _id(before), limit + 1)
        rows = list(DeadLetter.objects.filter(pk__in=found[:limit]).order_by("-pk").values(*exports.LISTED))
        if options["json"]:
            print_json(self, [plain(row) for row in rows])
        else:
            self.stdout.write("".join(f"{terminal.dead_letter_line(row)}\n" for row in rows), ending="")
        if len(found) > limit:
            self.stderr.write(f"Older messages: --before {found[limit - 1]}")

    def _show(self, options: dict[str, Any]) -> None:
        pk, masks = self._one(options)
        letter = exports.export_head(DeadLetter.objects.filter(pk=pk), masks)
        if letter is None:
            raise CommandError(f"No dead letter {pk}; list them with ./ma manage dlq list.")
        shown = {**letter, "protocols": _protocols(letter)}
        if options["json"]:
            print_json(self, plain(shown) | {"protocols": [plain(row) for row in shown["protocols"]]})
        else:
            self.stdout.write("\n".join(terminal.dead_letter_lines(shown)))

    def _one(self, options: dict[str, Any]) -> tuple[int, Masks]:
        """The number of the dead letter, and what is not told of it. Raises CommandError."""
        narrowed = filters.said(options)
        if options["id"] is None:
            if not narrowed:
                raise CommandError("Specify a message id or a filter; a filter shows the newest match.")
            some = filters.selection_of(options)
            if not (numbers := some.numbers(None, 1)):
                raise CommandError("No results.")
            return numbers[0], some.masks
        if narrowed:
            raise CommandError("Specify either a message id or a filter.")
        pk, person = _id(options["id"]), filters.person_of(options)
        if person and not letters_for(person).filter(pk=pk).exists():
            raise CommandError(f"No dead letter {pk}; list them with ./ma manage dlq list.")
        return pk, filters.masks_of(person)

    def _export(self, options: dict[str, Any]) -> None:
        """Piece by piece. A kill leaves a file that ends early: stderr's last line says that it is whole."""
        some, bodies = filters.selection_of(options), options["bodies"]
        record_export(some.person, key=some.key, file=options["format"], bodies=bodies, query=some.query)
        count = 0

        def counted() -> Generator[Row, None, None]:
            nonlocal count
            for row in exports.rows(some.step, some.masks, bodies=bodies):
                count += 1
                yield row

        try:
            self._write(exports.lines(counted(), options["format"]), options["output"])
        except OSError as error:
            raise CommandError(
                f"The export is incomplete, {count} messages: {error.strerror or error}"
            ) from error
        self.stderr.write(f"messages exported: {count}")

    def _write(self, pieces: Iterable[str], path: str | None) -> None:
        """Raises OSError."""
        if path is not None:
            with Path(path).open("w", encoding="utf-8", newline="") as file:
                file.writelines(pieces)
            return
        try:
            for piece in pieces:
                self.stdout.write(piece, ending="")
            self.stdout.flush()
        except BrokenPipeError:
            # Or Python would complain once more when it flushes at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise


# -- arguments -----------------------------------------------------------------------------------------------


def _list_arguments(parser: CommandParser) -> None:
    filters.add_filter_arguments(parser)
    parser.add_argument(
        "--limit", type=int, default=100, metavar="N", help=f"maximum number, up to {LONGEST_LIST}"
    )
    parser.add_argument("--before", type=int, metavar="ID", help="only older messages: the next page")
    parser.add_argument("--json", action="store_true")


def _export_arguments(parser: CommandParser) -> None:
    filters.add_filter_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, default="csv")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="output file, overwritten; default: standard output"
    )
    parser.add_argument(
        "--bodies",
        action="store_true",
        help="include whole stored messages, as import needs them; default: only their beginnings",
    )


# -- dead letters --------------------------------------------------------------------------------------------


def _protocols(letter: Row) -> list[dict[str, Any]]:
    """The newest ones of its case; a dead letter without a key has none."""
    if not letter["message_key"]:
        return []
    same = {"setting_key": letter["setting_key"], "message_key": letter["message_key"]}
    rows = FailureProtocol.objects.filter(**same).values(*PROTOCOL)[:PROTOCOLS_SHOWN]
    return [{**row, "id": str(row["id"])} for row in rows]


def _id(number: int) -> int:
    """Raises CommandError for what no column of ours holds."""
    if not 0 < number < 2**63:
        raise CommandError(f"{number} is not a dead-letter id.")
    return number
