"""Describes what a person gives an agent: bounded JSON, and how rows from before the bounds are read without
harm."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from contract.typed import storable
from contract.wire import DEEPEST, deeper_than

# Of what is saved. Every level is a level of recursion in each reader, and every server gets all of it.
DEEPEST_PARAMETERS = 32
LARGEST_PARAMETERS = 64 * 1024  # bytes of canonical JSON


class UnreadableJson(dict[str, Any]):
    """Stands for what is in the row and cannot be read: too deep for a reader, or no JSON. It is never
    written back."""


def canonical(value: Any) -> bytes:
    """The same bytes for the same value. Raises ValueError, RecursionError, TypeError."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def text_of(value: Any) -> str:
    """Returns text for people. What is too deep to be written shows as three points."""
    if isinstance(value, UnreadableJson) or deeper_than(value, DEEPEST):
        return "…"
    return json.dumps(value, ensure_ascii=False)


def check_bounds(value: Any) -> None:
    """Raises ValidationError."""
    if isinstance(value, UnreadableJson) or deeper_than(value, DEEPEST_PARAMETERS):
        raise ValidationError(
            _("The structure is nested deeper than %(most)s levels. Flatten it."),
            code="too_deep",
            params={"most": DEEPEST_PARAMETERS},
        )
    try:
        size = len(canonical(value))
    except (ValueError, TypeError) as error:
        raise ValidationError(
            _("The value contains something that JSON does not support, such as NaN."), code="not_json"
        ) from error
    if size > LARGEST_PARAMETERS:
        raise ValidationError(
            _("The value is larger than %(most)s KB. Store large data where the agent can read it."),
            code="too_large",
            params={"most": LARGEST_PARAMETERS // 1024},
        )


def check_storable(value: Any) -> None:
    """PostgreSQL refuses NUL in JSON; a lone surrogate is no text anywhere."""
    texts = [value]
    while texts:
        item = texts.pop()
        if isinstance(item, dict):
            texts.extend([*item.keys(), *item.values()])
        elif isinstance(item, list):
            texts.extend(item)
        elif isinstance(item, str) and storable(item) != item:
            raise ValidationError(
                _("A text value contains NUL or an invalid character."), code="not_storable"
            )


class JsonFormField(forms.JSONField):
    """A form of a row whose value nests too deep can be shown and corrected."""

    def to_python(self, value: Any) -> Any:
        try:
            found = super().to_python(value)
        except (RecursionError, ValueError) as error:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from error
        # An unbounded one would be shown again in the form, and its writer recurses.
        check_bounds(found)
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            found = super().bound_data(data, initial)
        except (RecursionError, ValueError):
            return forms.fields.InvalidJSONInput(data)
        if isinstance(data, str) and deeper_than(found, DEEPEST):
            return forms.fields.InvalidJSONInput(data)
        return found

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, str) and (isinstance(value, UnreadableJson) or deeper_than(value, DEEPEST)):
            return ""
        return super().prepare_value(value)

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return super().has_changed(initial, data)
        except (RecursionError, ValueError):
            return True


class ReadableJSONField(models.JSONField):
    """A JSON column of which one bad row never stops those that read many. The same column in the
    database."""

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        try:
            return super().from_db_value(value, expression, connection)
        except (RecursionError, ValueError):
            return UnreadableJson()

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if isinstance(value, UnreadableJson):
            raise ValueError(
                f"{self.name} is unreadable and cannot be saved again: pass update_fields without it"
            )
        return super().get_db_prep_value(value, connection, prepared)

    def validate(self, value: Any, model_instance: Any) -> None:
        # First: the check of the parent writes the value as JSON, level by level.
        check_bounds(value)
        super().validate(value, model_instance)

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"form_class": JsonFormField, **kwargs})
