"""manage.py dlq groups|waiting|edit|edit-all|ask|import: the rest of the REST interface, with JSON."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.handlers.wsgi import WSGIRequest
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import Resolver404, resolve
from rest_framework.exceptions import APIException

from console.operations.rest import as_problems
from console.rest.errors import answer
from dlq.cli import terminal
from dlq.cli.terminal import safe
from dlq.groups.rules import KINDS

# -- questions to the REST interface without a network: the same views, in the name of a person --------------


ROOT = "/api/v1/"
LONGEST = 500
# Of an error, beside those for which there are words.
TOLD = ("error", "detail", "where", "what_to_do")
REFUSED = 1


class Refused(CommandError):
    """Holds what the interface answered instead: `told` is its body."""

    def __init__(self, told: Any) -> None:
        super().__init__(words(told), returncode=REFUSED)
        self.told = told if isinstance(told, dict) else {}


def person_named(name: str) -> User:
    person = User.objects.filter(username=name, is_active=True).first()
    if person is None:
        raise CommandError(f"There is no active user {name!r}.")
    return person


@contextmanager
def as_refused(where: str) -> Iterator[None]:
    """Turns what an operation refuses into what the interface would answer. Raises Refused."""
    try:
        with as_problems(where):
            yield
    except (APIException, PermissionDenied) as error:
        raise Refused(answer(error, {}).data) from error


@contextmanager
def about_setting(key: str | None) -> Iterator[None]:
    """Says of a setting that is not there, or not for this person, which one that is."""
    try:
        yield
    except Refused as refused:
        if not key or refused.told.get("error") != "not_found":
            raise
        detail = f"Setting {safe(key, LONGEST)!r} not found for this user."
        more = {
            "detail": detail,
            "where": "setting",
            "what_to_do": "List settings with ./ma manage settings list.",
        }
        raise Refused(refused.told | more) from refused


def call_api(person: User, method: str, path: str, data: Any = None, **query: Any) -> Any:
    """The answer's data. `path` is that below /api/v1/. Raises Refused."""
    body = b"" if data is None else json.dumps(data, default=str).encode()
    asked = urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
    request = WSGIRequest(
        {
            "REQUEST_METHOD": method,
            "PATH_INFO": ROOT + path,
            "QUERY_STRING": asked,
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_HOST": _host(),
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "wsgi.input": BytesIO(body),
            "wsgi.url_scheme": "http",
        }
    )
    request._force_auth_user = person  # type: ignore[attr-defined]  # as Django REST framework looks for it
    try:
        view = resolve(ROOT + path)
    except Resolver404 as error:
        raise CommandError(f"No REST route {ROOT}{safe(path, LONGEST)}.") from error
    response = view.func(request, *view.args, **view.kwargs)
    if getattr(response, "streaming", False):
        raise CommandError("The response is a file: use ./ma manage dlq export.")
    # Plain values, as another process would read them.
    content = response.render().content if hasattr(response, "render") else response.content
    told = json.loads(content) if content else {}
    if response.status_code >= 400:
        raise Refused(told)
    return told


def words(told: Any) -> str:
    """An error in one line."""
    if not isinstance(told, dict):
        return safe(json.dumps(told, default=str), LONGEST)
    where = str(told.get("where", ""))
    begin = (
        f"{where}: {told.get('detail', '')}"
        if where and told.get("error") == "invalid"
        else told.get("detail", "")
    )
    more = [f"{name}: {_short(value)}" for name, value in told.items() if name not in TOLD and value]
    return " ".join(safe(str(each), LONGEST) for each in (begin, told.get("what_to_do", ""), *more) if each)


def _short(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _host() -> str:
    """One that links in answers may name."""
    host = next(iter(settings.ALLOWED_HOSTS), "localhost").lstrip(".")
    return "localhost" if host == "*" else host


FORMS = {
    "edit": '{"body": {"text": "…"}, "set": [{"name": "region", "type": "string", "value": '
    '"north"}], "remove": ["x"], '
    '"reason": "…", "acknowledge": ["same_version"]}',
    "edit-all": '{"setting": "orders", "all": true, "rule": [{"op": "set_property", "name": "region", '
    '"type": "string", "value": "north"}], "reason": "…", "acknowledge": ["same_version"]}',
}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def add_query_commands(actions: Any) -> None:
    groups = actions.add_parser("groups", help="group dead letters by error, server or day")
    groups.add_argument("--setting", metavar="KEY", help="default: every setting that the user may see")
    groups.add_argument("--by", choices=list(KINDS), default="fingerprint")
    groups.add_argument("--limit", type=int, default=50, metavar="N")
    add_person_arguments(groups)
    groups.set_defaults(run=_groups)

    waiting = actions.add_parser(
        "waiting", help="list the waiting messages of a setting; with --do act on them"
    )
    waiting.add_argument("key", metavar="KEY")
    waiting.add_argument("--part", default="waiting", help="waiting, delayed, in_delivery or held")
    waiting.add_argument("--do", metavar="ACTION", help="try_now, to_dlq, hold or release")
    waiting.add_argument(
        "--message", type=int, action="append", metavar="N", help="number of a message; repeatable"
    )
    waiting.add_argument("--all", action="store_true", help="all messages of the part")
    waiting.add_argument("--reason", default="", metavar="TEXT", help="reason for the audit log")
    add_person_arguments(waiting)
    waiting.set_defaults(run=_waiting)

    for name, text in (
        ("edit", "edit one message and replay the copy"),
        ("edit-all", "edit messages with a rule"),
    ):
        edit = actions.add_parser(
            name, help=f"{text}; the request is JSON, as for POST /api/v1/dead-letters/…edit/"
        )
        if name == "edit":
            edit.add_argument("id", type=int)
        edit.add_argument(
            "--changes", required=True, metavar="FILE", help=f"JSON like {FORMS[name]}; - is stdin"
        )
        edit.add_argument("--dry-run", action="store_true", help="only show changes")
        add_person_arguments(edit)
        edit.set_defaults(run=_edit)

    anything = actions.add_parser("ask", help="call any REST route below /api/v1/")
    anything.add_argument("method", choices=METHODS)
    anything.add_argument("path", help="for example known-faults/ or dead-letters/7/")
    anything.add_argument("--data", metavar="FILE", help="JSON request body; - is stdin")
    anything.add_argument("--query", action="append", default=[], metavar="NAME=VALUE", help="repeatable")
    add_person_arguments(anything)
    anything.set_defaults(run=_anything)


def add_person_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--as", dest="person", required=True, metavar="USER", help="act with the permissions of this user"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, also for refusals")


def _groups(command: BaseCommand, options: dict[str, Any]) -> None:
    asked = {name: options[name] for name in ("by", "setting", "limit")}
    person = person_named(options["person"])
    with about_setting(options["setting"]):
        told = call_api(person, "GET", "dead-letter-groups/", **asked)
    if options["json"]:
        print_json(command, told)
        return
    for group in told["groups"]:
        command.stdout.write(terminal.group(group))
    if told["more"]:
        command.stderr.write("There are more groups, smaller or older ones.")


def _waiting(command: BaseCommand, options: dict[str, Any]) -> None:
    person, path = person_named(options["person"]), f"settings/{options['key']}/waiting/"
    with about_setting(options["key"]):
        print_json(command, _asked_of_waiting(person, path, options))


def _asked_of_waiting(person: User, path: str, options: dict[str, Any]) -> Any:
    if not options["do"]:
        return call_api(person, "GET", path, part=options["part"])
    data: dict[str, Any] = {"action": options["do"], "part": options["part"], "reason": options["reason"]}
    if options["message"]:
        data["messages"] = options["message"]
    if options["all"]:
        data["all"] = True
    return call_api(person, "POST", path, data)


def _edit(command: BaseCommand, options: dict[str, Any]) -> None:
    form = f"Expected: {FORMS[options['command']]}"
    data = _read(options["changes"], form)
    if not isinstance(data, dict):
        raise CommandError(f"The request must be a JSON object. {form}")
    path = f"dead-letters/{options['id']}/edit/" if "id" in options else "dead-letters/edit/"
    if options["dry_run"]:
        data["dry_run"] = True
    print_json(command, call_api(person_named(options["person"]), "POST", path, data))


def _anything(command: BaseCommand, options: dict[str, Any]) -> None:
    query: dict[str, list[str]] = {}
    for each in options["query"]:
        name, _equals, value = each.partition("=")
        query.setdefault(name, []).append(value)
    data = _read(options["data"]) if options["data"] else None
    print_json(
        command,
        call_api(
            person_named(options["person"]), options["method"], options["path"].lstrip("/"), data, **query
        ),
    )


def _read(path: str, form: str = "") -> Any:
    try:
        return json.loads(sys.stdin.read() if path == "-" else Path(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"{path} is not valid JSON: {error}. {form}".rstrip()) from error


def print_json(command: BaseCommand, value: Any) -> None:
    command.stdout.write(json.dumps(value, indent=2, ensure_ascii=False))


# -- import: messages of JSON lines into the subscription of one setting, for tests --------------------------


LONGEST_PROBLEM = 300


def add_import_command(actions: Any) -> None:
    parser = actions.add_parser(
        "import",
        help="send messages from JSON lines to a setting, for tests; without --send only check them",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        help="output of export --format jsonl --bodies, or your own JSON lines; - is stdin",
    )
    parser.add_argument("--setting", required=True, metavar="KEY")
    add_person_arguments(parser)
    parser.add_argument("--send", action="store_true", help="send the messages; without it nothing is sent")
    parser.add_argument("--again", action="store_true", help="import the same lines again")
    parser.add_argument("--reason", default="", metavar="TEXT", help="reason for the audit log")
    parser.set_defaults(run=_import)


def _import(command: BaseCommand, options: dict[str, Any]) -> None:
    data = {
        "setting": options["setting"],
        "lines": _lines_of(options["file"]),
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
        print_json(command, answer)
        return
    done = "sent" if answer["sent"] else "would be sent; nothing was sent: add --send"
    before = (
        "; the same lines were imported before" if answer["imported_before"] and not answer["sent"] else ""
    )
    command.stdout.write(f"messages: {answer['messages']}, {answer['bytes']} bytes, {done}{before}")


def _lines_of(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
