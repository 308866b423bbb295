"""Form fields of the filter: values that repeat, and numbers that say what is wrong with them."""

from collections.abc import Sequence
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

MOST_VALUES = 10
LONGEST_NAME, LONGEST_VALUE = 200, 500
Pair = tuple[str, str]


class LinesInput(forms.Textarea):
    """Several values: `?name=a&name=b` of an address, or the lines of one text of a form."""

    def __init__(self) -> None:
        super().__init__(attrs={"rows": 1})

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        values = data.getlist(name) if hasattr(data, "getlist") else [data.get(name) or ""]
        return [line.strip() for value in values for line in str(value).splitlines() if line.strip()]

    def format_value(self, value: Any) -> str:
        if isinstance(value, (list, tuple)):
            return "\n".join("=".join(each) if isinstance(each, tuple) else str(each) for each in value)
        return str(value or "")


class PairsField(forms.Field):
    """`name=value` each; a list of (name, value)."""

    widget = LinesInput

    def clean(self, value: Any) -> list[Pair]:
        lines: Sequence[str] = value or ()
        if len(lines) > MOST_VALUES:
            raise ValidationError(_("At most %(n)s at a time.") % {"n": MOST_VALUES})
        return [self._pair(line) for line in lines]

    @staticmethod
    def _pair(line: str) -> Pair:
        name, equals, value = line.partition("=")
        if not equals or not name.strip() or len(name) > LONGEST_NAME or len(value) > LONGEST_VALUE:
            raise ValidationError(_("Write it as name=value."))
        return name.strip(), value.strip()


class PairsFilter(django_filters.Filter):
    field_class = PairsField


class WholeNumberFilter(django_filters.Filter):
    field_class = forms.IntegerField

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=2**31 - 1, **options)
