"""Makes a document whose fields and types are right of plain values. Nothing is looked up in the database
here."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import models

from agents.manifests.yaml_text import ManifestProblem, Rejected
from agents.models import Destination, LaunchSetting, Pool, Schedule, ScheduledGroup
from contract.text import storable

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
        return "" if field.null else "a value is needed"
    if isinstance(field, models.JSONField):
        # The model's own check passes over everything that is empty. One that may be null is a list else.
        needed = dict if isinstance(field.get_default(), dict) else list
        if not isinstance(value, needed):
            return "a mapping is needed" if needed is dict else "a list is needed"
        return json_problem(value)
    if isinstance(field, models.BooleanField):
        return "" if isinstance(value, bool) else "true or false is needed"
    if isinstance(field, models.FloatField):
        return "" if _is_number(value) else "a number is needed"
    if isinstance(field, models.IntegerField):
        return "" if isinstance(value, int) and not isinstance(value, bool) else "a whole number is needed"
    return text_problem(value)


def text_problem(value: Any) -> str:
    if not isinstance(value, str):
        return f"a text is needed; write it in quotes: '{value}'" if _is_scalar(value) else "a text is needed"
    return "" if storable(value) == value else "it contains NUL or a broken character"


def json_problem(value: Any) -> str:
    """YAML knows dates, sets and binary; JSON does not."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            return "the keys must be texts"
        return next((problem for each in value.values() if (problem := json_problem(each))), "")
    if isinstance(value, list):
        return next((problem for each in value if (problem := json_problem(each))), "")
    if value is None or isinstance(value, bool | str) or _is_number(value):
        return ""
    return f"{value!r} is nothing that JSON knows; write it in quotes"


def names_problem(value: Any) -> str:
    if not isinstance(value, list):
        return "a list of names is needed"
    return next((problem for each in value if (problem := text_problem(each))), "")


def unknown_fields(path: str, given: Mapping[Any, Any], known: set[str]) -> list[ManifestProblem]:
    return [
        ManifestProblem(
            f"{path}/{name}" if path else str(name),
            f"there is no such field; there are: {', '.join(sorted(known))}",
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
        raise Rejected([ManifestProblem("", f"a mapping is needed with any of: {', '.join(MODELS)}")])
    problems = unknown_fields("", data, {"version", *MODELS})
    if data.get("version", VERSION) != VERSION:
        problems.append(ManifestProblem("version", f"only version {VERSION} is known"))
    entries = {section: _section(section, data.get(section), problems) for section in MODELS}
    if problems:
        raise Rejected(problems)
    return Document(entries)


def _section(section: str, data: Any, problems: list[ManifestProblem]) -> list[Entry]:
    if data is None:
        return []
    if not isinstance(data, dict):
        problems.append(ManifestProblem(section, "a mapping from names to fields is needed"))
        return []
    found = []
    for name, given in data.items():
        path = f"{section}/{name}"
        if problem := text_problem(name):
            problems.append(ManifestProblem(path, problem))
        elif not isinstance(given, dict | None):
            problems.append(ManifestProblem(path, "a mapping of fields is needed"))
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
        return [ManifestProblem(path, "a mapping of fields is needed, or null for none")]
    plain = plain_fields(Schedule)
    found = {name: type_problem(plain[name], value[name]) for name in value if name in plain}
    wrong = [ManifestProblem(f"{path}/{name}", problem) for name, problem in found.items() if problem]
    return wrong + unknown_fields(path, value, set(plain))


def _nothing_or_text(value: Any) -> str:
    return "" if value is None else text_problem(value)


def _truth(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false is needed"


_BESIDE_TYPES: dict[str, Callable[[Any], str]] = {
    "pool": text_problem,
    "destination": _nothing_or_text,
    "servers": names_problem,
    "members": names_problem,
    "enabled": _truth,
}
