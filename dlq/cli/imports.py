"""manage.py dlq import: messages of JSON lines into the subscription of one setting, for tests."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dlq.cli.rest import Refused, about_setting, call_api, person_named
from dlq.cli.terminal import safe

LONGEST_PROBLEM = 300


def add_import_command(actions: Any) -> None:
    parser = actions.add_parser(
        "import",
        help="send messages of JSON lines to a setting, for tests; without --send it only looks at them",
    )
    parser.add_argument(
        "file", metavar="FILE", help="of export --format jsonl --bodies, or written by hand; - is stdin"
    )
    parser.add_argument("--setting", required=True, metavar="KEY")
    parser.add_argument(
        "--as", dest="person", required=True, metavar="USER", help="with the rights of this person"
    )
    parser.add_argument("--send", action="store_true", help="else nothing is sent")
    parser.add_argument("--again", action="store_true", help="although the same lines were imported before")
    parser.add_argument("--reason", default="", metavar="TEXT", help="for the audit")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=_import)


def _import(command: BaseCommand, options: dict[str, Any]) -> None:
    data = {
        "setting": options["setting"],
        "lines": _read(options["file"]),
        "dry_run": not options["send"],
        "again": options["again"],
        "reason": options["reason"],
    }
    try:
        with about_setting(options["setting"]):
            answer = call_api(person_named(options["person"]), "POST", "imports/", data)
    except Refused as refused:
        for problem in refused.told.get("problems", ()):
            command.stderr.write(safe(str(problem), LONGEST_PROBLEM))
        raise
    if options["json"]:
        command.stdout.write(json.dumps(answer, indent=2))
        return
    done = "sent" if answer["sent"] else "would be sent; nothing was: say --send"
    before = (
        ", the same lines were imported before" if answer["imported_before"] and not answer["sent"] else ""
    )
    command.stdout.write(f"messages: {answer['messages']}, {answer['bytes']} bytes, {done}{before}")


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
