"""What a list is narrowed by: instants, spans, switches, which say what is wrong with them; a filter as of an
address, and as people read it."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters import rest_framework as rest_filters


class InstantInput(forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self, attrs: dict[str, str] | None = None) -> None:
        super().__init__(attrs={"step": "1", **(attrs or {})}, format="%Y-%m-%dT%H:%M:%S")


class InstantField(forms.Field):
    """ISO 8601; without an offset it is of the zone of the site, a date alone its begin."""

    widget = InstantInput

    def clean(self, value: Any) -> datetime | None:
        text = str(value or "").strip()
        if not text:
            return None
        try:
            at = parse_datetime(text.replace(" ", "+") if text.count(" ") == 1 and "T" in text else text)
        except ValueError:
            at = None
        if at is None:
            raise ValidationError(_("Write an instant like 2026-03-01T06:00 or 2026-03-01T06:00:00+00:00."))
        if timezone.is_naive(at):
            at = timezone.make_aware(at)
        try:
            return at.astimezone(UTC)
        except OverflowError as error:
            raise ValidationError(_("There is no such instant.")) from error

    def prepare_value(self, value: Any) -> Any:
        return value


class InstantFilter(django_filters.Filter):
    field_class = InstantField


SPANS = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "7d": timedelta(days=7)}
SPAN_LABELS = [
    ("1h", gettext_lazy("last hour")),
    ("1d", gettext_lazy("last 24 hours")),
    ("7d", gettext_lazy("last 7 days")),
]


class SpanFilter(django_filters.ChoiceFilter):
    """`?span=1h`: rows whose `field_name` is not older than that."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            choices=SPAN_LABELS, empty_label=gettext_lazy("any time"), label=gettext_lazy("Time"), **options
        )

    def filter(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        if value not in SPANS:
            return rows
        return rows.filter(**{f"{self.field_name}__gte": timezone.now() - SPANS[value]})


class Switch(forms.Field):
    def to_python(self, value: Any) -> bool | None:
        known = {"": None, "none": None, "true": True, "false": False}
        word = str(value).lower() if value is not None else ""
        if word not in known:
            raise ValidationError(_("Choose true or false."))
        return known[word]


class SwitchFilter(rest_filters.BooleanFilter):
    field_class = Switch

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"widget": forms.TextInput, **options})


def filter_part(query: QueryDict, page_own: Collection[str]) -> QueryDict:
    """What of an address is a filter: without what is empty and without what is of its page. A name that
    nobody knows is kept: it is refused with what it may have meant."""
    kept = query.copy()
    for name, values in query.lists():
        if name in page_own or not any(values):
            del kept[name]
    return kept


def filter_words(form: forms.Form, holds_anyway: Mapping[str, str]) -> list[tuple[str, str]]:
    """Label and value of each field of a checked form that is set, as people read them."""
    words = []
    for name, value in form.cleaned_data.items():
        if value in (None, "", []) or value == holds_anyway.get(name):
            continue
        field = form.fields[name]
        labels = {str(key): str(label) for key, label in getattr(field, "choices", ())}
        for each in value if isinstance(value, list) else [value]:
            text = "=".join(each) if isinstance(each, tuple) else str(each)
            words.append((str(field.label), labels.get(text, text)))
    return words


def unclear(query: QueryDict, names: Collection[str], several: Collection[str] = ()) -> dict[str, str]:
    """Problems of these names: a value that is missing, as an empty variable of a script leaves it, or twice.
    `several`: of which more than one value counts. Where a program asks they are refused: a filter that is
    misunderstood must never find more than was meant."""
    problems = {}
    for name, values in query.lists():
        if name not in names:
            continue
        if not all(value.strip() for value in values):
            problems[name] = _("It has no value: leave it out, or say what it is to find.")
        elif len(values) > 1 and name not in several:
            problems[name] = _("It is there more than once; only one value can count.")
    return problems
