"""Instants as fields of a filter, which say what is wrong with them."""

from datetime import UTC, datetime
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _


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
