"""manage.py dlq: dead letters for scripts and for the night. Listing and exporting; the rest is in dlq.commands."""

import json
import os
import sys
from collections.abc import Generator, Iterable
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError
from django.db.models import QuerySet
from rest_framework.serializers import Serializer

from agents.models import LaunchSetting
from dlq import export, exporting, terminal
from dlq.api.letters import LetterQuery
from dlq.commands import anything, imports, replays
from dlq.export_limits import tell
from dlq.letters_for import letters_for
from dlq.masks import everybodys_masks, masks_for
from dlq.models import DeadLetter, LetterState
from failures.models import FailureProtocol

LONGEST_LIST = 1000
PROTOCOLS_SHOWN = 20
PROTOCOL = ("id", "occurred_at", "server_name", "attempt", "outcome", "exception_type", "exception_text", "place")
AS = "what this person may see; else masked for anybody"
FILTERS = {
    "setting": "dead letters of this setting",
    "state": f"{', '.join(LetterState.values)} or every; dead unless said otherwise",
    "exception_type": "died of exactly this type",
    "fingerprint": "died of this kind of failure",
    "message_key": "every death of this message",
    "since": "dead since this instant or later: 2026-03-01T06:00:00+00:00",
    "until": "dead before this instant",
}


class Command(BaseCommand):
    help = (
        "Lists, shows and exports dead letters, and does with them what the REST interface does. Exit codes: 1 "
        "refused or failed, 3 a person has to decide, 130 no longer waiting."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="command", required=True)
        _list_arguments(actions.add_parser("list", help="newest first"))
        show = actions.add_parser("show", help="one letter and its protocols")
        show.add_argument("id", type=int)
        show.add_argument("--json", action="store_true")
        show.add_argument("--as", dest="person", metavar="USER", help=AS)
        replays.add(actions)
        anything.add(actions)
        imports.add(actions)
        _export_arguments(
            actions.add_parser(
                "export", help="as CSV or JSON lines, newest first; with --bodies JSON lines hold properties too"
            )
        )

    def handle(self, *args: Any, **options: Any) -> None:
        actions = {"list": self._list, "show": self._show, "export": self._export}
        try:
            if run := options.get("run"):
                run(self, options)
            else:
                actions[options["command"]](options)
        except OperationalError as error:
            raise CommandError(f"The database does not do it: {' '.join(str(error).split())}") from error

    def _list(self, options: dict[str, Any]) -> None:
        limit, before = options["limit"], options["before"]
        if not 1 <= limit <= LONGEST_LIST:
            raise CommandError(f"--limit goes from 1 to {LONGEST_LIST}.")
        letters = _letters(options)
        if before is not None:
            letters = letters.filter(pk__lt=_id(before))
        found = list(letters.values(*export.LISTED)[: limit + 1])
        rows = found[:limit]
        if options["json"]:
            self._print([export.plain(row) for row in rows])
        else:
            self.stdout.write("".join(f"{terminal.listed(row)}\n" for row in rows), ending="")
        if len(found) > limit:
            self.stderr.write(f"There are older ones: --before {rows[-1]['id']}")

    def _show(self, options: dict[str, Any]) -> None:
        pk, person = _id(options["id"]), _named(options["person"])
        letters = letters_for(person) if person else DeadLetter.objects.all()
        masks = masks_for(person) if person else everybodys_masks()
        letter = exporting.head_of(letters.filter(pk=pk), masks)
        if letter is None:
            raise CommandError(f"There is no dead letter {pk}; manage.py dlq list shows them.")
        shown = {**letter, "protocols": _protocols(letter)}
        if options["json"]:
            self._print(export.plain(shown) | {"protocols": [export.plain(row) for row in shown["protocols"]]})
        else:
            self.stdout.write("\n".join(terminal.whole(shown)))

    def _export(self, options: dict[str, Any]) -> None:
        """Piece by piece. A kill leaves a file that ends early: stderr's last line says that it is whole."""
        letters, bodies, person = _letters(options), options["bodies"], _named(options["person"])
        masks = masks_for(person) if person else everybodys_masks()
        if person:
            letters = letters & letters_for(person)
        tell(person, key=options["setting"] or "", file=options["format"], bodies=bodies, query=_asked(options))
        count = 0

        def counted() -> Generator[export.Row, None, None]:
            nonlocal count
            for row in exporting.rows(exporting.of_rows(letters), masks, bodies=bodies):
                count += 1
                yield row

        try:
            self._write(export.lines(counted(), options["format"]), options["output"])
        except OSError as error:
            raise CommandError(f"The export is not whole, {count} letters: {error.strerror or error}") from error
        self.stderr.write(f"letters exported: {count}")

    def _write(self, pieces: Iterable[str], path: str | None) -> None:
        """Raises OSError."""
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="") as file:
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

    def _print(self, value: Any) -> None:
        self.stdout.write(json.dumps(value, indent=2, ensure_ascii=False))


# -- arguments ------------------------------------------------------------------------------------------------------


def _list_arguments(parser: CommandParser) -> None:
    _filter_arguments(parser)
    parser.add_argument("--limit", type=int, default=100, metavar="N", help=f"at most, up to {LONGEST_LIST}")
    parser.add_argument("--before", type=int, metavar="ID", help="only older ones: the next page")
    parser.add_argument("--json", action="store_true")


def _export_arguments(parser: CommandParser) -> None:
    _filter_arguments(parser)
    parser.add_argument("--format", choices=export.FORMATS, default="csv")
    parser.add_argument("-o", "--output", metavar="FILE", help="written anew; else to the standard output")
    parser.add_argument(
        "--bodies", action="store_true", help="whole letters as far as they are kept, as import takes them; else heads"
    )
    parser.add_argument("--as", dest="person", metavar="USER", help=AS)


def _filter_arguments(parser: CommandParser) -> None:
    for name, text in FILTERS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", help=text)


# -- letters --------------------------------------------------------------------------------------------------------


def _letters(options: dict[str, Any]) -> QuerySet[DeadLetter]:
    """What the filter finds, newest first."""
    query = LetterQuery(data={name: options[name] for name in FILTERS if options[name] is not None})
    _check(query)
    letters = DeadLetter.objects.filter(**query.filters()).order_by("-pk")
    key = options["setting"]
    if key is not None and not LaunchSetting.objects.filter(key=key).exists() and not letters.exists():
        raise CommandError(f"There is no setting {key!r}; manage.py settings list shows them.")
    return letters


def _asked(options: dict[str, Any]) -> str:
    """The filter as in an address, for the audit."""
    return urlencode({name: options[name] for name in FILTERS if options[name] is not None})


def _named(name: str | None) -> User | None:
    if name is None:
        return None
    person = User.objects.filter(username=name, is_active=True).first()
    if person is None:
        raise CommandError(f"There is no active user {name!r}.")
    return person


def _protocols(letter: export.Row) -> list[dict[str, Any]]:
    """The newest ones of its case; a letter without a key has none."""
    if not letter["message_key"]:
        return []
    same = {"setting_key": letter["setting_key"], "message_key": letter["message_key"]}
    rows = FailureProtocol.objects.filter(**same).values(*PROTOCOL)[:PROTOCOLS_SHOWN]
    return [{**row, "id": str(row["id"])} for row in rows]


def _id(number: int) -> int:
    """Raises CommandError for what no column of ours holds."""
    if not 0 < number < 2**63:
        raise CommandError(f"{number} is no number of a dead letter.")
    return number


def _check(question: Serializer[Any]) -> None:
    if question.is_valid():
        return
    words = [f"{name}: {' '.join(_flat(problem))}" for name, problem in question.errors.items()]
    raise CommandError("; ".join(words))


def _flat(problem: Any) -> list[str]:
    """Messages of a field, also of the parts of a list; each once."""
    if isinstance(problem, dict):
        problem = [message for part in problem.values() for message in part]
    return list(dict.fromkeys(map(str, problem)))
