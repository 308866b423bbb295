"""From plain values to a document whose fields and types are right. Nothing is looked up in the database
here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.declared import fields
from agents.declared.problems import Problem, Rejected
from agents.models import Destination, LaunchSetting, Pool, Schedule, ScheduledGroup

VERSION = 1
MODELS: dict[str, fields.Row] = {
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
        raise Rejected([Problem("", f"a mapping is needed with any of: {', '.join(MODELS)}")])
    problems = fields.unknown_fields("", data, {"version", *MODELS})
    if data.get("version", VERSION) != VERSION:
        problems.append(Problem("version", f"only version {VERSION} is known"))
    entries = {section: _section(section, data.get(section), problems) for section in MODELS}
    if problems:
        raise Rejected(problems)
    return Document(entries)


def _section(section: str, data: Any, problems: list[Problem]) -> list[Entry]:
    if data is None:
        return []
    if not isinstance(data, dict):
        problems.append(Problem(section, "a mapping from names to fields is needed"))
        return []
    found = []
    for name, given in data.items():
        path = f"{section}/{name}"
        if problem := fields.text_problem(name):
            problems.append(Problem(path, problem))
        elif not isinstance(given, dict | None):
            problems.append(Problem(path, "a mapping of fields is needed"))
        else:
            found.append(Entry(section, name, given or {}))
            problems += _entry_problems(found[-1])
    return found


def _entry_problems(entry: Entry) -> list[Problem]:
    plain = fields.plain_fields(MODELS[entry.section])
    problems = fields.unknown_fields(entry.path, entry.given, {*plain, *BESIDE[entry.section]})
    for name, value in entry.given.items():
        path = f"{entry.path}/{name}"
        if name in plain:
            problem = fields.type_problem(plain[name], value)
        elif name == "schedule":
            problems += _schedule_problems(path, value)
            continue
        else:
            problem = _BESIDE_TYPES[name](value) if name in BESIDE[entry.section] else ""
        if problem:
            problems.append(Problem(path, problem))
    return problems


def _schedule_problems(path: str, value: Any) -> list[Problem]:
    if value is None:
        return []
    if not isinstance(value, dict):
        return [Problem(path, "a mapping of fields is needed, or null for none")]
    plain = fields.plain_fields(Schedule)
    found = {name: fields.type_problem(plain[name], value[name]) for name in value if name in plain}
    wrong = [Problem(f"{path}/{name}", problem) for name, problem in found.items() if problem]
    return wrong + fields.unknown_fields(path, value, set(plain))


def _nothing_or_text(value: Any) -> str:
    return "" if value is None else fields.text_problem(value)


def _truth(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false is needed"


_BESIDE_TYPES: dict[str, Callable[[Any], str]] = {
    "pool": fields.text_problem,
    "destination": _nothing_or_text,
    "servers": fields.names_problem,
    "members": fields.names_problem,
    "enabled": _truth,
}
