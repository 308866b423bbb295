"""manage.py dlq groups|waiting|edit|edit-all|ask: the rest of the REST interface, with JSON in and out."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dlq import terminal
from dlq.commands.rest import ask, person_named
from dlq.groups import KINDS

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def add(actions: Any) -> None:
    groups = actions.add_parser("groups", help="dead letters by what they died of, where, on which day")
    groups.add_argument("--setting", metavar="KEY", help="else of every setting that the person may see")
    groups.add_argument("--by", choices=list(KINDS), default="fingerprint")
    groups.add_argument("--limit", type=int, default=50, metavar="N")
    groups.add_argument("--json", action="store_true")
    _person(groups)
    groups.set_defaults(run=_groups)

    waiting = actions.add_parser("waiting", help="what waits for a setting; with --do something is done with it")
    waiting.add_argument("key", metavar="KEY")
    waiting.add_argument("--part", default="waiting", help="waiting, delayed, in_delivery or held")
    waiting.add_argument("--do", metavar="ACTION", help="try_now, to_dlq, hold or release")
    waiting.add_argument("--message", type=int, action="append", metavar="N", help="this one; again for more")
    waiting.add_argument("--all", action="store_true", help="all of the part")
    waiting.add_argument("--reason", default="", metavar="TEXT", help="for the audit")
    _person(waiting)
    waiting.set_defaults(run=_waiting)

    for name, text in (("edit", "edit one letter and give its copy back"), ("edit-all", "edit letters by a rule")):
        edit = actions.add_parser(name, help=f"{text}; the question is JSON, as POST /api/v1/dead-letters/…edit/")
        if name == "edit":
            edit.add_argument("id", type=int)
        edit.add_argument("--changes", required=True, metavar="FILE", help="- is the standard input")
        edit.add_argument("--dry-run", action="store_true", help="tell what would change")
        _person(edit)
        edit.set_defaults(run=_edit)

    anything = actions.add_parser("ask", help="any address of the REST interface below /api/v1/")
    anything.add_argument("method", choices=METHODS)
    anything.add_argument("path", help="such as known-faults/ or dead-letters/7/")
    anything.add_argument("--data", metavar="FILE", help="the JSON to send; - is the standard input")
    anything.add_argument("--query", action="append", default=[], metavar="NAME=VALUE", help="again for more")
    _person(anything)
    anything.set_defaults(run=_anything)


def _person(parser: CommandParser) -> None:
    parser.add_argument("--as", dest="person", required=True, metavar="USER", help="with the rights of this person")


def _groups(command: BaseCommand, options: dict[str, Any]) -> None:
    asked = {name: options[name] for name in ("by", "setting", "limit")}
    told = ask(person_named(options["person"]), "GET", "dead-letter-groups/", **asked)
    if options["json"]:
        _print(command, told)
        return
    for group in told["groups"]:
        command.stdout.write(terminal.group(group))
    if told["more"]:
        command.stderr.write("There are other groups, smaller or older ones.")


def _waiting(command: BaseCommand, options: dict[str, Any]) -> None:
    person, path = person_named(options["person"]), f"settings/{options['key']}/waiting/"
    if not options["do"]:
        _print(command, ask(person, "GET", path, part=options["part"]))
        return
    data = {"action": options["do"], "part": options["part"], "reason": options["reason"]}
    if options["message"]:
        data["messages"] = options["message"]
    if options["all"]:
        data["all"] = True
    _print(command, ask(person, "POST", path, data))


def _edit(command: BaseCommand, options: dict[str, Any]) -> None:
    data = _read(options["changes"])
    if not isinstance(data, dict):
        raise CommandError("The question is a JSON object.")
    path = f"dead-letters/{options['id']}/edit/" if "id" in options else "dead-letters/edit/"
    if options["dry_run"]:
        data["dry_run"] = True
    _print(command, ask(person_named(options["person"]), "POST", path, data))


def _anything(command: BaseCommand, options: dict[str, Any]) -> None:
    query: dict[str, list[str]] = {}
    for each in options["query"]:
        name, _equals, value = each.partition("=")
        query.setdefault(name, []).append(value)
    data = _read(options["data"]) if options["data"] else None
    _print(command, ask(person_named(options["person"]), options["method"], options["path"].lstrip("/"), data, **query))


def _read(path: str) -> Any:
    try:
        return json.loads(sys.stdin.read() if path == "-" else Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} is no JSON: {error}") from error


def _print(command: BaseCommand, value: Any) -> None:
    command.stdout.write(json.dumps(value, indent=2, ensure_ascii=False))
