"""Describes why something is so: stored as a code with its parameters, said in the language of whoever reads
it.

An app declares its kinds once, in its module `reasons`. A row keeps {"code": …, "params": {…}}, or {} where
there is no reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from django.db.models import JSONField, TextChoices
from django.db.models.fields.json import KeyTransform
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from contract import reasons as reported_reasons
from contract.typed import storable

LONGEST_TEXT = 2000  # characters of one parameter
LONGEST_NAME, LONGEST_REPORTED, MOST_PARAMS, BIGGEST = 60, 500, 6, 2**53  # of what a server reports


@dataclass(frozen=True, slots=True)
class Reason:
    """`str()` says it; an unknown code, as of a later version, shows itself with its parameters. False where
    there is none."""

    code: str = ""
    params: Mapping[str, "Param"] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.code:
            return ""
        kind = ReasonKind.known.get(self.code)
        return kind.say(self.params) if kind else _as_it_is(self)

    def __bool__(self) -> bool:
        return bool(self.code)

    def __hash__(self) -> int:
        return hash(self.code)

    def as_json(self) -> dict[str, Any]:
        """Returns what a row keeps, and what REST shows beside the text."""
        return {"code": self.code, "params": self.params_as_json()} if self.code else {}

    def params_as_json(self) -> dict[str, Any]:
        return {name: _stored(value) for name, value in self.params.items()}

    @classmethod
    def from_json(cls, stored: Any) -> "Reason":
        """Reads what a row keeps; what is none of ours counts as no reason."""
        if not isinstance(stored, dict) or not isinstance(stored.get("code"), str):
            return cls()
        params = stored.get("params")
        found = params.items() if isinstance(params, dict) else ()
        return cls(stored["code"], {name: _read(value) for name, value in found})

    @classmethod
    def reported(cls, said: reported_reasons.Reason) -> "Reason":
        """Reads what a server reports, within bounds."""
        some = list(said.params.items())[:MOST_PARAMS]
        params = {storable(name)[:LONGEST_NAME]: _plain(value) for name, value in some}
        return cls(storable(said.code)[:LONGEST_NAME], params)


NO_REASON = Reason()
Param: TypeAlias = str | int | float | list[str] | Reason | None


class ReasonKind:
    """`text` is a translated sentence with the names of its parameters. `choices`: parameters that hold a
    value of these; its label is said."""

    known: ClassVar[dict[str, "ReasonKind"]] = {}

    def __init__(self, code: str, text: str | Promise, **choices: type[TextChoices]) -> None:
        if code in self.known:
            raise ValueError(f"two kinds of reasons have the code {code}")
        self.code, self.text, self._choices = code, text, choices
        self.known[code] = self

    def __call__(self, **params: Param) -> Reason:
        return Reason(self.code, params)

    def say(self, params: Mapping[str, Param]) -> str:
        """A parameter that is missing, as in a row of another version, is shown as `…`."""
        return str(self.text) % _Said({name: self._said(name, value) for name, value in params.items()})

    def _said(self, name: str, value: Param) -> str:
        choices = self._choices.get(name)
        if choices is not None and isinstance(value, str) and value in choices:
            return str(choices(value).label)
        return ", ".join(map(str, value)) if isinstance(value, list) else reported_reasons.said(value)


class _Said(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "…"


_SAID = ReasonKind("said", "%(text)s")
# What a version before codes had stored as a sentence, and no migration knows.
ReasonKind("legacy.text", "%(text)s")
BROKER_AWAY = ReasonKind("broker.away", _("The broker is not responding: %(problem)s."))


def said(text: str) -> Reason:
    """The words of a person, of a broker or of an agent: shown as they are."""
    return _SAID(text=text) if text else NO_REASON


def _plain(value: Any) -> "Param":
    """A number that no column takes, and whatever is no number, as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -BIGGEST < value < BIGGEST:
        return storable(value if isinstance(value, str) else str(value))[:LONGEST_REPORTED]
    return value


def _as_it_is(reason: Reason) -> str:
    facts = ", ".join(f"{name}: {value}" for name, value in reason.params.items())
    return f"{reason.code} ({facts})" if facts else reason.code


def _stored(value: Param) -> Any:
    if isinstance(value, Reason):
        return value.as_json()
    if isinstance(value, list):
        return [storable(str(each))[:LONGEST_TEXT] for each in value]
    return storable(value)[:LONGEST_TEXT] if isinstance(value, str) else value


def _read(value: Any) -> Param:
    return Reason.from_json(value) if isinstance(value, dict) else value


class ReasonField(JSONField):
    """A column of a `Reason`."""

    empty_values = (None, "", NO_REASON)

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("default", Reason)
        options.setdefault("blank", True)
        super().__init__(*args, **options)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if isinstance(expression, KeyTransform):
            return super().from_db_value(value, expression, connection)
        if value == "{}":
            return NO_REASON  # most are; lists read hundreds
        return Reason.from_json(super().from_db_value(value, expression, connection))

    def to_python(self, value: Any) -> Reason:
        return value if isinstance(value, Reason) else Reason.from_json(super().to_python(value))

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(value.as_json() if isinstance(value, Reason) else value)

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        """Raises TypeError for a text, which would be read back as no reason."""
        if not isinstance(value, Reason) and not hasattr(value, "resolve_expression"):
            raise TypeError(f"{self.name} takes a Reason, not {value!r}")
        return super().get_db_prep_save(value, connection)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        stored = value.as_json() if isinstance(value, Reason) else value
        return super().get_db_prep_value(stored, connection, prepared)

    def validate(self, value: Any, model_instance: Any) -> None:
        """A reason is always whole: nobody types one."""

    def value_to_string(self, obj: Any) -> Any:
        return self.value_from_object(obj).as_json()


class ReasonsField(JSONField):
    """A column of a list of reasons."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("default", list)
        options.setdefault("blank", True)
        super().__init__(*args, **options)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if value == "[]":
            return []  # most are; pages read thousands
        return _reasons(super().from_db_value(value, expression, connection))

    def to_python(self, value: Any) -> list[Reason]:
        return _reasons(super().to_python(value))

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(_as_list(value))

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return super().get_db_prep_value(_as_list(value), connection, prepared)

    def value_to_string(self, obj: Any) -> Any:
        return _as_list(self.value_from_object(obj))


def _reasons(value: Any) -> list[Reason]:
    return [one if isinstance(one, Reason) else Reason.from_json(one) for one in value or ()]


def _as_list(value: Any) -> Any:
    return (
        [each.as_json() if isinstance(each, Reason) else each for each in value]
        if isinstance(value, list)
        else value
    )
