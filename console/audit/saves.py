"""Describes what people save: each form, REST route and command that saves a row leaves one entry of the
audit for it.

An app declares each kind of row once, in `audit_codes` or `apps`. The entry is made in the transaction of
the save, so that both are there or neither. It names every field that changed, with what the database held
before and holds after; what was locked for the first is not changed by anybody else until the second.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from django.db import models, transaction
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext as _now
from django.utils.translation import pgettext_lazy

from console.audit.log import Person, account_of, record
from console.audit.text import ACTIONS, DETAILS, PAGES, TargetPage, Text

Values = Mapping[str, Any]
LONGEST = 200  # characters of a text
MOST = 50  # members of a list
VERBS: Mapping[str, Text] = {
    "create": pgettext_lazy("what people do", "Add"),
    "change": pgettext_lazy("what people do", "Change"),
    "delete": pgettext_lazy("what people do", "Delete"),
}


def _of_none(row: Any) -> str:
    return ""


def _nothing_more(row: Any) -> Values:
    return {}


@dataclass(frozen=True, slots=True, eq=False)
class RowKind:
    """A kind of row that people save. `name`: before the verb in codes; `key`: the field that targets name;
    `target`: before it, where that is another word than the name; `page`: of the row, where a target's number
    finds it. `about`: fields that each entry names, changed or not. `removed_by`: the code of the operation
    that deletes one.

    Of a row count the fields that people choose, but for `left_out`. `many`: fields of several rows, and what
    each of these is named by; `more`: what else belongs to it. `secret`: fields whose values are never told;
    `shown`: what is told of a value; `words`: how a value is said."""

    name: str
    model: type[models.Model]
    title: Text
    key: str = "pk"
    target: str = ""
    page: str = ""
    about: Sequence[str] = ()
    removed_by: str = ""
    verbs: Mapping[str, Text] = field(default_factory=lambda: VERBS)
    setting_key: Callable[[Any], str] = _of_none
    left_out: Collection[str] = ()
    many: Mapping[str, Sequence[str]] = field(default_factory=dict)
    more: Callable[[Any], Values] = _nothing_more
    secret: Collection[str] = ()
    shown: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    words: Mapping[str, Callable[[Any], Text]] = field(default_factory=dict)
    known: ClassVar[dict[type[models.Model], "RowKind"]] = {}

    def __post_init__(self) -> None:
        self.known[self.model] = self
        codes = {self.code(verb): words for verb, words in self.verbs.items()}
        own = {code: words for code, words in codes.items() if code != self.removed_by}
        ACTIONS.declare({code: format_lazy("{}: {}", self.title, words) for code, words in own.items()})
        if self.page:
            PAGES.declare({self.name: TargetPage(self.page)})

    @classmethod
    def of(cls, row: models.Model) -> "RowKind":
        return cls.known[row.__class__]  # whoever is signed in hides behind a proxy

    def code(self, verb: str) -> str:
        return self.removed_by if verb == "delete" and self.removed_by else f"{self.name}.{verb}"

    def names(self, row: models.Model, verb: str) -> dict[str, Any]:
        """Returns what names it in an entry."""
        return {
            "action": self.code(verb),
            "target": f"{self.target or self.name}:{getattr(row, self.key)}",
            "setting_key": self.setting_key(row),
        }

    def _fields(self) -> dict[str, Any]:
        """All that a row has, from other tables too."""
        return {each.name: each for each in self.model._meta.get_fields()}

    def _chosen(self) -> "list[models.Field[Any, Any]]":
        own = [each for each in self._fields().values() if isinstance(each, models.Field)]
        typed = [each for each in own if each.editable and not (each.primary_key or each.many_to_many)]
        return [each for each in typed if each.name not in self.left_out]

    def stored(self, row: models.Model) -> Values | None:
        """Returns the row as the database has it, locked; None where it has none."""
        if row.pk is None:
            return None
        rows: models.QuerySet[Any] = models.QuerySet(self.model).select_for_update(of=("self",), no_key=True)
        if related := [each.name for each in self._chosen() if each.is_relation]:
            rows = rows.select_related(*related)
        found = rows.filter(pk=row.pk).first()
        return None if found is None else self._values(found)

    def _values(self, row: Any) -> Values:
        """A relation by the name of the other row."""
        found = {each.name: _plain(getattr(row, each.name)) for each in self._chosen()}
        for name, path in self.many.items():
            rows = getattr(row, name).values_list(*path)
            found[name] = [".".join(map(str, parts)) for parts in rows]
        return {**found, **self.more(row)}

    def _blank(self) -> Values:
        """Returns the values of a row of which nothing was said."""
        defaults = {each.name: _plain(each.get_default()) for each in self._chosen()}
        return defaults | {name: [] for name in self.many}

    def changes(self, old: Values | None, new: Values | None) -> dict[str, Any]:
        """Returns them by field. None: there was no row, or there is none any more. Then only what was chosen
        is recorded; what names it stands elsewhere."""
        before, after = (self._blank() if each is None else each for each in (old, new))
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if old is None or new is None:
            names = [name for name in names if name not in (self.key, *self.about)]
        if new is None:
            names = [name for name in names if name not in self.secret]
        gone = [side for side, values in (("old", old), ("new", new)) if values is None]
        recorded = {name: self._change(name, before.get(name), after.get(name)) for name in names}
        return {name: _without(change, gone) for name, change in recorded.items()}

    def _change(self, name: str, old: Any, new: Any) -> dict[str, Any]:
        """Returns only the members of what has some; values that a person has put behind names of their own,
        as the parameters of an agent, may be secrets: only the names are told."""
        if name in self.secret:
            return {}
        if isinstance(old, dict) or isinstance(new, dict):
            old, new = (each if isinstance(each, dict) else {} for each in (old, new))
            same = [key for key in new if key in old]
            changed = [key for key in same if new[key] != old[key]]
            return _members(old, new) | ({"changed": _short(changed)} if changed else {})
        if isinstance(old, list) and isinstance(new, list) and (members := _members(old, new)):
            return members
        return {"old": self._audited_value(name, old), "new": self._audited_value(name, new)}

    def _audited_value(self, name: str, value: Any) -> Any:
        return _short(self.shown[name](value) if name in self.shown else value)

    def named_in(self, values: Values) -> dict[str, Any]:
        recorded = {name: self._audited_value(name, values.get(name)) for name in self.about}
        return {"about": recorded} if recorded else {}

    def label(self, name: str) -> Text:
        return getattr(self._fields().get(name), "verbose_name", "") or DETAILS.get(name, name)

    def say(self, name: str, value: Any) -> str:
        """A value as people read it."""
        if isinstance(value, list) and value:
            return ", ".join(self.say(name, each) for each in value)
        if name in self.words:
            return str(self.words[name](value))
        if isinstance(value, bool):
            return _now("yes") if value else _now("no")
        if value in (None, "", []):
            return "—"
        choices: dict[Any, Any] = dict(getattr(self._fields().get(name), "flatchoices", None) or ())
        return str(choices.get(str(value), value))


class Saving:
    """The save of one row, begun in its transaction before anything of it is stored. `row` is the one that is
    saved, and may be set later where it is new. `counts`: of what went with it, for the entry."""

    def __init__(self, row: models.Model | None, by: Person) -> None:
        self.row, self.by = row, by
        self.counts: Mapping[str, int] = {}
        self._old = None if row is None else RowKind.of(row).stored(row)

    def end(self, verb: str = "", *, even_unchanged: bool = False) -> None:
        """`even_unchanged`: somebody pressed the button, so an entry says that nothing changed."""
        if self.row is None:
            raise ValueError("nothing was saved")
        kind = RowKind.of(self.row)
        new = kind.stored(self.row) or {}
        changes = kind.changes(self._old, new)
        verb = verb or ("create" if self._old is None else "change")
        if not changes and verb != "create" and not even_unchanged:
            return
        recorded = {"changes": changes} if changes or verb == "create" else {"changed": False}
        _add(kind.names(self.row, verb), self.by, kind.named_in(new) | recorded, self.counts)


@contextmanager
def saving(
    row: models.Model | None, by: Person, *, verb: str = "", even_unchanged: bool = False
) -> Iterator[Saving]:
    """Makes what is stored inside and its entry one transaction. `by`: None for the command line."""
    with transaction.atomic():
        save = Saving(row, by)
        yield save
        save.end(verb, even_unchanged=even_unchanged)


def record_deletion(row: models.Model, by: Person) -> None:
    """Records it in the transaction that deletes it, before it does."""
    kind = RowKind.of(row)
    old = kind.stored(row)
    if old is not None:
        _add(kind.names(row, "delete"), by, kind.named_in(old) | {"changes": kind.changes(old, None)}, {})


def _add(names: Mapping[str, Any], by: Person, detail: dict[str, Any], counts: Mapping[str, int]) -> None:
    record(**names, by=by, now=timezone.now(), counts=counts, detail={**detail, **account_of(by)})


def change_words(action: str, detail: Any) -> list[tuple[Text, str]]:
    """Label and text of each field that an entry names. What a later version wrote otherwise is left out."""
    name = action.partition(".")[0]
    kind = next((each for each in RowKind.known.values() if each.name == name), None)
    if kind is None or not isinstance(detail, dict):
        return []
    about, changes = (_mapping(detail.get(part)) for part in ("about", "changes"))
    said = [(kind.label(name), kind.say(name, value)) for name, value in about.items()]
    texts = ((name, _change_text(kind, name, _mapping(change))) for name, change in changes.items())
    return [*said, *((kind.label(name), text) for name, text in texts)]


def _change_text(kind: RowKind, name: str, change: Values) -> str:
    if not change:
        return _now("changed")
    members = {"added": _now("added"), "removed": _now("removed"), "changed": _now("changed")}
    lists = [(word, change[part]) for part, word in members.items() if isinstance(change.get(part), list)]
    if lists:
        said = ((word, ", ".join(kind.say(name, each) for each in some)) for word, some in lists)
        return "; ".join(f"{word}: {some}" for word, some in said)
    return " → ".join(kind.say(name, change[side]) for side in ("old", "new") if side in change)


def _mapping(value: Any) -> Values:
    return value if isinstance(value, dict) else {}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, models.Model) else value


def _members(old: Collection[Any], new: Collection[Any]) -> dict[str, Any]:
    added, removed = [each for each in new if each not in old], [each for each in old if each not in new]
    return {name: _short(some) for name, some in (("added", added), ("removed", removed)) if some}


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(each) for each in value[:MOST]] + (["…"] if len(value) > MOST else [])
    return f"{value[:LONGEST]}…" if isinstance(value, str) and len(value) > LONGEST else value


def _without(change: dict[str, Any], sides: Collection[str]) -> dict[str, Any]:
    return {side: value for side, value in change.items() if side not in sides}
