"""A file of settings: YAML to plain values and back, and of these a document whose fields and types are
right. Nothing is looked up in the database here."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models

from agents.models import Destination, LaunchSetting, Pool, Schedule, ScheduledGroup
from console.operations.refusals import NotAllowed, Refused
from contract.typed import storable

# -- what is wrong in a file, each with the path of the place ------------------------------------------------


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """`path`: as in settings/orders/breaker_m; empty for the file as a whole. `forbidden`: a right is
    missing."""

    path: str
    text: str
    forbidden: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class Rejected(Exception):
    """Nothing of the file was stored."""

    def __init__(self, problems: list[ManifestProblem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


@contextmanager
def gathered(problems: list[ManifestProblem], path: str) -> Iterator[None]:
    """Makes a refusal inside a problem at that path, or at the field below it."""
    try:
        yield
    except ValidationError as error:
        problems += _from_validation(path, error)
    except Refused as error:
        problems.append(ManifestProblem(path, f"{error.reason} {error.what_to_do}".strip()))
    except NotAllowed as error:
        problems.append(ManifestProblem(path, error.reason, forbidden=True))


def _from_validation(path: str, error: ValidationError) -> Iterator[ManifestProblem]:
    if not hasattr(error, "error_dict"):
        yield ManifestProblem(path, " ".join(error.messages))
        return
    last = path.rsplit("/", 1)[-1]
    for name, texts in error.message_dict.items():
        below = "" if name in (NON_FIELD_ERRORS, last) else f"/{name}"
        yield ManifestProblem(f"{path}{below}", " ".join(texts))


# -- YAML to plain values and back ---------------------------------------------------------------------------
# Only what a person would write: no aliases, no tags, no key twice.


LARGEST_BYTES = 4 * 1024 * 1024


class _Loader(yaml.SafeLoader):
    """Aliases are refused: a few lines of them stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # by the stubs
            raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _value in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a string", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"duplicate key {key!r}", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def load(text: bytes) -> Any:
    """Raises Rejected."""
    if len(text) > LARGEST_BYTES:
        raise Rejected([ManifestProblem("", f"the file is larger than {LARGEST_BYTES} bytes")])
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Rejected([ManifestProblem(place, error.problem or "not valid YAML")]) from error
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: a date or a number that looks like one and is none.
        raise Rejected([ManifestProblem("", str(error).splitlines()[0])]) from error
    except RecursionError as error:
        raise Rejected([ManifestProblem("", "nested too deeply")]) from error


def dump(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


# -- which fields of a row stand in a file, and of which type they are ---------------------------------------


Row = type[Pool] | type[Destination] | type[LaunchSetting] | type[ScheduledGroup] | type[Schedule]

# What names the row is the key of its entry; relations are named there too.
IDENTITY = {"id", "name", "key"}


def plain_fields(model: Row) -> "dict[str, models.Field[Any, Any]]":
    """Those that people choose and that are no relation, in the order of the model."""
    chosen = [field for field in model._meta.concrete_fields if field.editable and not field.is_relation]
    # A destination is named by its address, and has a field `name` no more than others.
    return {field.name: field for field in chosen if field.name not in IDENTITY}


def type_problem(field: "models.Field[Any, Any]", value: Any) -> str:
    """Empty where the type fits; whether the value does is the model's to say."""
    if value is None:
        return "" if field.null else "a value is required"
    if isinstance(field, models.JSONField):
        # The model's own check passes over everything that is empty. One that may be null is a list else.
        needed = dict if isinstance(field.get_default(), dict) else list
        if not isinstance(value, needed):
            return "must be a mapping" if needed is dict else "must be a list"
        return json_problem(value)
    if isinstance(field, models.BooleanField):
        return "" if isinstance(value, bool) else "must be true or false"
    if isinstance(field, models.FloatField):
        return "" if _is_number(value) else "must be a number"
    if isinstance(field, models.IntegerField):
        return "" if isinstance(value, int) and not isinstance(value, bool) else "must be a whole number"
    return text_problem(value)


def text_problem(value: Any) -> str:
    if not isinstance(value, str):
        return f"must be a string: quote it as '{value}'" if _is_scalar(value) else "must be a string"
    return "" if storable(value) == value else "contains NUL or an invalid character"


def json_problem(value: Any) -> str:
    """YAML knows dates, sets and binary; JSON does not."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            return "keys must be strings"
        return next((problem for each in value.values() if (problem := json_problem(each))), "")
    if isinstance(value, list):
        return next((problem for each in value if (problem := json_problem(each))), "")
    if value is None or isinstance(value, bool | str) or _is_number(value):
        return ""
    return f"{value!r} is not a JSON value: write it in quotes"


def names_problem(value: Any) -> str:
    if not isinstance(value, list):
        return "must be a list of names"
    return next((problem for each in value if (problem := text_problem(each))), "")


def unknown_fields(path: str, given: Mapping[Any, Any], known: set[str]) -> list[ManifestProblem]:
    return [
        ManifestProblem(
            f"{path}/{name}" if path else str(name),
            f"unknown field; known fields: {', '.join(sorted(known))}",
        )
        for name in given
        if name not in known
    ]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_scalar(value: Any) -> bool:
    return value is not None and not isinstance(value, dict | list)


VERSION = 1
MODELS: dict[str, Row] = {
    "pools": Pool,
    "destinations": Destination,
    "settings": LaunchSetting,
    "groups": ScheduledGroup,
}
# What stands in an entry beside the plain fields of its row.
BESIDE = {
    "pools": {"servers"},
    "destinations": set[str](),
    "settings": {"pool", "destination", "schedule", "enabled"},
    "groups": {"members", "schedule", "enabled"},
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of the file. `given` holds only what the file says: every other field stays as it is, or
    gets its default where the object is new."""

    section: str
    name: str
    given: Mapping[str, Any]

    @property
    def path(self) -> str:
        return f"{self.section}/{self.name}"

    @property
    def plain(self) -> dict[str, Any]:
        return {name: value for name, value in self.given.items() if name not in BESIDE[self.section]}


@dataclass(frozen=True, slots=True)
class Document:
    entries: Mapping[str, list[Entry]] = field(default_factory=dict)

    def of(self, section: str) -> list[Entry]:
        return self.entries.get(section, [])


def document_of(data: Any) -> Document:
    """Raises Rejected with every problem of shape."""
    if not isinstance(data, dict):
        raise Rejected([ManifestProblem("", f"must be a mapping with any of: {', '.join(MODELS)}")])
    problems = unknown_fields("", data, {"version", *MODELS})
    if data.get("version", VERSION) != VERSION:
        problems.append(ManifestProblem("version", f"only version {VERSION} is supported"))
    entries = {section: _section(section, data.get(section), problems) for section in MODELS}
    if problems:
        raise Rejected(problems)
    return Document(entries)


def _section(section: str, data: Any, problems: list[ManifestProblem]) -> list[Entry]:
    if data is None:
        return []
    if not isinstance(data, dict):
        problems.append(ManifestProblem(section, "must be a mapping of names to fields"))
        return []
    found = []
    for name, given in data.items():
        path = f"{section}/{name}"
        if problem := text_problem(name):
            problems.append(ManifestProblem(path, problem))
        elif not isinstance(given, dict | None):
            problems.append(ManifestProblem(path, "must be a mapping of fields"))
        else:
            found.append(Entry(section, name, given or {}))
            problems += _entry_problems(found[-1])
    return found


def _entry_problems(entry: Entry) -> list[ManifestProblem]:
    plain = plain_fields(MODELS[entry.section])
    problems = unknown_fields(entry.path, entry.given, {*plain, *BESIDE[entry.section]})
    for name, value in entry.given.items():
        path = f"{entry.path}/{name}"
        if name in plain:
            problem = type_problem(plain[name], value)
        elif name == "schedule":
            problems += _schedule_problems(path, value)
            continue
        else:
            problem = _BESIDE_TYPES[name](value) if name in BESIDE[entry.section] else ""
        if problem:
            problems.append(ManifestProblem(path, problem))
    return problems


def _schedule_problems(path: str, value: Any) -> list[ManifestProblem]:
    if value is None:
        return []
    if not isinstance(value, dict):
        return [ManifestProblem(path, "must be a mapping of fields, or null")]
    plain = plain_fields(Schedule)
    found = {name: type_problem(plain[name], value[name]) for name in value if name in plain}
    wrong = [ManifestProblem(f"{path}/{name}", problem) for name, problem in found.items() if problem]
    return wrong + unknown_fields(path, value, set(plain))


def _nothing_or_text(value: Any) -> str:
    return "" if value is None else text_problem(value)


def _truth(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


_BESIDE_TYPES: dict[str, Callable[[Any], str]] = {
    "pool": text_problem,
    "destination": _nothing_or_text,
    "servers": names_problem,
    "members": names_problem,
    "enabled": _truth,
}
