"""Which fields of a row stand in a file, and of which type they are."""

import math
from collections.abc import Mapping
from typing import Any

from django.db import models

from agents.declared.problems import Problem
from agents.models import Destination, LaunchSetting, Pool, Schedule, ScheduledGroup
from contract.text import storable

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


def unknown_fields(path: str, given: Mapping[Any, Any], known: set[str]) -> list[Problem]:
    return [
        Problem(
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
