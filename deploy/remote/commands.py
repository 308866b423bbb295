"""Commands as the site declares them: their options, and what is asked of it then."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn
from urllib.parse import quote

from deploy.remote.site import Exit, RemoteError, Site, read_file

VERSION = 1
LARGEST_INPUT = 32 * 1024 * 1024
# Options of the client itself, which no command of a site may have.
JSON, INPUT, OUT, COLUMNS, ALL_PAGES = "--json", "--input", "--out", "--columns", "--all-pages"
TYPES = {"string": str, "integer": int, "number": float}

Described = Mapping[str, Any]


class Parser(argparse.ArgumentParser):
    """2 says that a plan has changes."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(Exit.USAGE, f"{self.prog}: {message}\n")


def described(site: Site, noun: str = "") -> list[Described]:
    """The commands of a noun, or all. Raises RemoteError."""
    try:
        answer = site.asked("GET", "/api/v1/commands/", {"noun": noun} if noun else ())
    except RemoteError as problem:
        if problem.answer is not None and problem.answer.get("error") == "not_found":
            what = "This version of the site has no remote commands."
            raise RemoteError(Exit.REFUSED, what, "Upgrade the site.") from None
        raise
    if answer["version"] != VERSION:
        what = f"The site uses version {answer['version']} of remote commands, this program {VERSION}."
        raise RemoteError(Exit.REFUSED, what, "Use the ./ma of that version.")
    return [each for each in answer["commands"] if noun in ("", each["noun"])]


def parser_of(noun: str, commands: Sequence[Described]) -> Parser:
    parser = Parser(prog=f"ma {noun}", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for command in commands:
        about = command["about"].replace("%", "%%")
        verb = verbs.add_parser(command["verb"], help=about, description=about, allow_abbrev=False)
        verb.set_defaults(command=command)
        add_options(verb, command)
    return parser


def add_options(parser: argparse.ArgumentParser, command: Described) -> None:
    for each in command["inputs"]:
        if each["place"] == "path":
            parser.add_argument(f"path:{each['name']}", metavar=each["name"].upper())
        else:
            _add_option(parser, each)
    parser.add_argument(JSON, dest="json", action="store_true", help="print the response as JSON")
    if any(each["place"] == "body" for each in command["inputs"]):
        about = "request body as JSON (- reads standard input); options override its fields"
        parser.add_argument(INPUT, dest="input", metavar="FILE", help=about)
    if command["answer"] == "file":
        parser.add_argument(OUT, dest="out", metavar="FILE", help="output file (default: standard output)")
    if command["answer"] == "list":
        parser.add_argument(
            COLUMNS, dest="columns", metavar="A,B", help="show only these columns, in this order"
        )
        parser.add_argument(ALL_PAGES, dest="all_pages", action="store_true", help="fetch all pages")


def _add_option(parser: argparse.ArgumentParser, each: Described) -> None:
    about = each["about"].replace("%", "%%") + (" (required)" if each["needed"] else "")
    option: dict[str, Any] = {"dest": f"{each['place']}:{each['name']}", "help": about.strip() or None}
    if each["type"] == "boolean" and not each["several"]:
        option["action"] = argparse.BooleanOptionalAction
    else:
        option["metavar"] = "JSON" if each["type"] == "json" else each["name"].upper()
        option["type"] = TYPES.get(each["type"], _from_json)
        if each["choices"] and each["type"] == "string":
            option |= {"choices": each["choices"], "metavar": None}
        if each["several"]:
            option["nargs"] = "*"
    parser.add_argument(f"--{each['name'].replace('_', '-')}", default=argparse.SUPPRESS, **option)


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not valid JSON: {text[:40]}") from error


# -- what is asked then --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str
    query: Sequence[tuple[str, Any]]
    body: Mapping[str, Any] | None


def asked_of(command: Described, chosen: argparse.Namespace, standard_input: BinaryIO) -> Asked:
    """Raises RemoteError."""
    values: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "body": {}}
    for name, value in vars(chosen).items():
        place, colon, field = name.partition(":")
        if colon:
            values[place][field] = value
    path = str(command["path"])
    for name, value in values["path"].items():
        if not value:
            raise RemoteError(Exit.USAGE, f"{name.upper()} is empty.")
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    query = [(name, _in_query(value)) for name, value in values["query"].items()]
    takes = any(each["place"] == "body" for each in command["inputs"]) or bool(command["fixed"])
    if not takes:
        return Asked(command["method"], path, query, None)
    given = _input(chosen.input, standard_input) if getattr(chosen, "input", None) else {}
    return Asked(command["method"], path, query, {**given, **values["body"], **command["fixed"]})


def _in_query(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_query(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else value


def _input(name: str, standard_input: BinaryIO) -> dict[str, Any]:
    try:
        given = json.loads(read_file(name, LARGEST_INPUT, standard_input))
    except ValueError as error:
        raise RemoteError(Exit.USAGE, f"{name} is not valid JSON: {error}.") from None
    if not isinstance(given, dict):
        raise RemoteError(Exit.USAGE, f"{name} is not a JSON object.")
    return given
