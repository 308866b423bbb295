"""A filter that is true or false; what is neither is refused, not left out."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django_filters import rest_framework as filters


class Switch(forms.Field):
    def to_python(self, value: Any) -> bool | None:
        known = {"": None, "none": None, "true": True, "false": False}
        word = str(value).lower() if value is not None else ""
        if word not in known:
            raise ValidationError(_("Choose true or false."))
        return known[word]


class SwitchFilter(filters.BooleanFilter):
    field_class = Switch

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"widget": forms.TextInput, **options})
