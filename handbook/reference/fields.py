"""Fields of what people configure: label, values, default and unit, as the models have them."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib import admin
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from agents.models import Destination, LaunchSetting, Pool, Schedule, ScheduledGroup
from handbook import markdown

HEADS = ("field", "name in files and REST", "values", "default", "description")
POSITIVE = (models.PositiveSmallIntegerField, models.PositiveIntegerField, models.PositiveBigIntegerField)
KINDS = (LaunchSetting, Schedule, Destination, Pool, ScheduledGroup)


def pages() -> Mapping[str, str]:
    parts = [part for model in KINDS for part in _section(model)]
    return {
        "settings": markdown.page(
            "Settings",
            "Fields of launch settings and of what belongs to them. A unit stands in the label. "
            "*Empty* means that a field may be left empty.",
            *parts,
        )
    }


def _section(model: type[models.Model]) -> Iterator[str]:
    help_texts = _help_texts(model)
    rows = [
        (
            markdown.plain(_title(str(field.verbose_name))),
            markdown.code(field.name),
            _values(field),
            _default(field),
            markdown.plain(str(help_texts.get(field.name, field.help_text))),
        )
        for field in (*model._meta.fields, *model._meta.many_to_many)
        if field.editable and not field.primary_key
    ]
    yield f"## {_title(str(model._meta.verbose_name_plural))}"
    if model is not Schedule:
        yield _introduction(model)
    yield markdown.table(HEADS, rows)


def _help_texts(model: type[models.Model]) -> Mapping[str, Any]:
    """As the form of the model's page has them."""
    form: Any = getattr(_page_of(model), "form", None)
    declared = {name: field.help_text for name, field in getattr(form, "declared_fields", {}).items()}
    return declared | (getattr(getattr(form, "Meta", None), "help_texts", None) or {})


def _introduction(model: type[models.Model]) -> str:
    described = (options.get("description", "") for _name, options in _page_of(model).fieldsets or ())
    return markdown.plain(" ".join(str(text) for text in described if text))


def _page_of(model: type[models.Model]) -> Any:
    """A schedule has no page of its own: it is part of that of its setting."""
    return admin.site._registry[LaunchSetting if model is Schedule else model]


def _title(text: str) -> str:
    return text[:1].upper() + text[1:]


def _values(field: Any) -> str:
    if field.choices:
        return ", ".join(f"`{value}` ({markdown.plain(str(label))})" for value, label in field.flatchoices)
    if isinstance(field, models.BooleanField):
        return "`true`, `false`"
    least = _limit(field, MinValueValidator, max)
    if least is None and isinstance(field, POSITIVE):
        least = 0
    most = _limit(field, MaxValueValidator, min)
    kind = _kind(field)
    if most is None:
        return kind
    return f"{kind}, {least:,.15g} to {most:,.15g}" if least is not None else f"{kind}, at most {most:,.15g}"


def _kind(field: Any) -> str:
    if field.is_relation:
        return f"{field.related_model._meta.verbose_name}" + ("s" if field.many_to_many else "")
    if isinstance(field, models.FloatField):
        return "number"
    if isinstance(field, models.IntegerField):
        return "whole number"
    if isinstance(field, models.JSONField):
        return "JSON"
    return f"text, at most {field.max_length} characters" if field.max_length else "text"


def _limit(field: Any, kind: type[MinValueValidator | MaxValueValidator], pick: Any) -> Any:
    """The model's own: the database adds others for whole numbers."""
    found = [each.limit_value for each in field._validators if isinstance(each, kind)]
    return pick(found) if found else None


def _default(field: Any) -> str:
    if not field.has_default():
        return "empty" if field.blank else "required"
    value = field.get_default()
    if value is None or value == "":
        return "empty"
    if isinstance(value, bool):
        return markdown.code(str(value).lower())
    if isinstance(value, dict | list):
        return markdown.code("{}" if isinstance(value, dict) else "[]")
    if isinstance(value, int | float):
        return f"{value:,.15g}"
    return markdown.code(str(value))
