"""Remote commands: made of the description of the REST interface, so that a new route is one with no further
code. Pure.

A command is a noun and a verb. The noun is what stands before the first place of an address (`settings`,
`retention-runs`); the verb is that of the operation that the route performs, else the rest of the address,
else the method.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

VERSION = 1
PREFIX = "/api/v1/"
# What the description of a route says of the operations that it performs: by their codes, each with what the
# body says for it.
EXTENSION = "x-operations"
METHODS = {"get": "get", "post": "create", "put": "replace", "patch": "change", "delete": "delete"}
PERSONS = frozenset({"personToken", "personOrServerToken"})
SCALARS = ("string", "integer", "number", "boolean")
DEEPEST = 6

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CommandInput:
    """`place`: path, query or body; `type`: one of SCALARS, or json for what is written as JSON. `several`:
    a list of them. `choices` empty: anything of the type."""

    name: str
    place: str
    type: str
    several: bool = False
    needed: bool = False
    choices: Sequence[str] = ()
    about: str = ""


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    """`operation`: code of the operation that it performs, empty where it is none; `fixed`: what the body
    says for it. `answer`: list, object, file or none."""

    noun: str
    verb: str
    method: str
    path: str
    about: str
    operation: str
    inputs: Sequence[CommandInput]
    fixed: Mapping[str, Any]
    answer: str


def commands_of(description: Schema) -> list[RemoteCommand]:
    """Of all routes that a person's token opens, in the order of their names. Of two with one name the one
    that names no row is about many."""
    found = [command for path in description["paths"] for command in _of_path(description, path)]
    twice = {name for name, count in Counter((each.noun, each.verb) for each in found).items() if count > 1}
    named = [
        replace(each, verb=f"{each.verb}-many")
        if (each.noun, each.verb) in twice and "{" not in each.path
        else each
        for each in found
    ]
    return sorted(named, key=lambda each: (each.noun, each.verb))


def _of_path(description: Schema, path: str) -> Iterator[RemoteCommand]:
    operations = description["paths"][path]
    noun, tail = _split(path, description["paths"])
    for method, route in operations.items():
        ways = [name for way in route.get("security", [{"personToken": []}]) for name in way]
        if method not in METHODS or not PERSONS.intersection(ways or PERSONS):
            continue
        answer = _answer(description, route)
        plain = RemoteCommand(
            noun=noun,
            verb=_verb(method, tail, answer, path, alone=len(operations) == 1),
            method=method.upper(),
            path=path,
            about=_plain(route.get("description", "")),
            operation="",
            inputs=[*_parameters(description, route), *_body(description, route)],
            fixed={},
            answer=answer,
        )
        yield from _performed(plain, route.get(EXTENSION, {})) or [plain]


def _performed(plain: RemoteCommand, operations: Schema) -> list[RemoteCommand]:
    return [
        replace(
            plain,
            verb=code.rpartition(".")[2].replace("_", "-"),
            operation=code,
            inputs=[each for each in plain.inputs if each.place != "body" or each.name not in said],
            fixed=said,
        )
        for code, said in operations.items()
    ]


def _split(path: str, paths: Schema) -> tuple[str, list[str]]:
    """The noun, and what follows it and the first place. More than one word is a noun where rows have
    addresses below it."""
    words = path.removeprefix(PREFIX).strip("/").split("/")
    literal = next((place for place, word in enumerate(words) if "{" in word), len(words))
    length = literal
    while length > 1 and not any(each.startswith(_address(words[:length]) + "{") for each in paths):
        length -= 1
    tail = words[length:literal] + [word for word in words[literal:] if "{" not in word]
    return "-".join(words[:length]), tail


def _address(words: Sequence[str]) -> str:
    return f"{PREFIX}{'/'.join(words)}/"


def _verb(method: str, tail: Sequence[str], answer: str, path: str, *, alone: bool) -> str:
    if tail:
        return "-".join(tail if alone or method == "get" else [*tail, METHODS[method]])
    return "list" if method == "get" and answer == "list" and "{" not in path else METHODS[method]


# -- what a command takes ------------------------------------------------------------------------------------


def _parameters(description: Schema, route: Schema) -> Iterator[CommandInput]:
    for each in route.get("parameters", []):
        if each["in"] in ("path", "query"):
            said = {"description": each.get("description", ""), **each.get("schema", {})}
            needed = each["in"] == "path" or bool(each.get("required"))
            yield _input(description, each["name"], each["in"], said, needed=needed)


def _body(description: Schema, route: Schema) -> Iterator[CommandInput]:
    content = route.get("requestBody", {}).get("content", {})
    whole = _resolved(description, content.get("application/json", {}).get("schema", {}))
    for name, said in whole.get("properties", {}).items():
        if not said.get("readOnly"):
            yield _input(description, name, "body", said, needed=name in whole.get("required", []))


def _input(description: Schema, name: str, place: str, said: Schema, *, needed: bool) -> CommandInput:
    resolved = _resolved(description, said)
    several = resolved.get("type") == "array"
    one = _resolved(description, resolved.get("items", {})) if several else resolved
    is_plain = one.get("type") in SCALARS
    return CommandInput(
        name=name,
        place=place,
        type=one["type"] if is_plain else "json",
        several=several and is_plain,
        needed=needed,
        choices=[str(each) for each in one.get("enum", []) if each not in (None, "")],
        about=_plain(said.get("description", "")),
    )


def _resolved(description: Schema, said: Schema, deep: int = 0) -> dict[str, Any]:
    """Without references; the codes of all that it may be."""
    if deep > DEEPEST:
        return dict(said)
    if reference := said.get("$ref"):
        named = description["components"]["schemas"][reference.rpartition("/")[2]]
        return _resolved(description, named, deep + 1)
    parts = [each for way in ("allOf", "oneOf", "anyOf") for each in said.get(way, [])]
    found = {name: value for name, value in said.items() if name not in ("allOf", "oneOf", "anyOf")}
    codes = list(found.get("enum", []))
    for part in parts:
        resolved = _resolved(description, part, deep + 1)
        codes += resolved.pop("enum", [])
        found = {**resolved, **found}
    return {**found, "enum": codes} if codes else found


def _answer(description: Schema, route: Schema) -> str:
    first: Schema = next((each for code, each in route["responses"].items() if code.startswith("2")), {})
    content = first.get("content", {})
    if not content:
        return "none"
    if "application/json" not in content:
        return "file"
    whole = _resolved(description, content["application/json"].get("schema", {}))
    is_list = whole.get("type") == "array" or "results" in whole.get("properties", {})
    return "list" if is_list else "object"


def _plain(text: str) -> str:
    """In one line, without the list of codes that a description ends with."""
    lines = [line.strip() for line in text.splitlines()]
    return " ".join(line for line in lines if line and not line.startswith("* `"))
