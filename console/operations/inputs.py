"""Describes what an operation asks for: one declaration makes the field of the page, of REST and of the
command."""

from abc import ABC, abstractmethod
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from django import forms
from django.core.management.base import CommandError
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from contract.typed import storable

LONGEST_REASON = 2000
SPANS = {
    "1h": timedelta(hours=1),
    "4h": timedelta(hours=4),
    "8h": timedelta(hours=8),
    "1d": timedelta(days=1),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
}
SPAN_LABELS = {
    "1h": _("for 1 hour"),
    "4h": _("for 4 hours"),
    "8h": _("for 8 hours"),
    "1d": _("for 1 day"),
    "3d": _("for 3 days"),
    "7d": _("for 7 days"),
}
OPEN_ENDED = [("", _("until removed manually")), *SPAN_LABELS.items()]
AT = "at"  # a span that is an instant


class Input(ABC):
    """`default` is what `run` gets where nothing is given."""

    default: ClassVar[Any] = None

    @abstractmethod
    def form_field(self) -> forms.Field: ...

    @abstractmethod
    def rest_field(self) -> "serializers.Field[Any, Any, Any, Any]": ...

    @abstractmethod
    def add_argument(self, parser: ArgumentParser, name: str) -> None: ...

    def from_form(self, value: Any, now: datetime) -> Any:
        """Returns the input of the cleaned value of the page's field."""
        return value

    def for_audit(self, value: Any) -> Any:
        """JSON, or None: not told."""
        return value

    def from_address(self, value: Any) -> Any:
        """Raises Http404."""
        return value

    def from_command(self, value: Any) -> Any:
        """Raises CommandError."""
        return value


class StorableField(forms.CharField):
    """A text that every database takes."""

    def to_python(self, value: Any) -> str:
        return storable(str(value or "")).strip()


@dataclass(frozen=True, slots=True)
class TextInput(Input):
    """One line, or several for `long` ones. `required`: not empty, on a page and over REST. `untold`: the
    audit's entry does not have it."""

    label: Any  # of a form's field, translated when it is shown
    longest: int
    long: bool = False
    required: bool = False
    untold: bool = False
    default: ClassVar[str | None] = ""

    def form_field(self) -> forms.Field:
        widget = forms.Textarea(attrs={"class": "reason", "rows": 3}) if self.long else None
        return StorableField(label=self.label, required=self.required, max_length=self.longest, widget=widget)

    def rest_field(self) -> "serializers.Field[Any, Any, Any, Any]":
        if self.required:
            return serializers.CharField(max_length=self.longest)
        return serializers.CharField(
            max_length=self.longest,
            required=False,
            default=self.default,
            allow_null=self.default is None,
            allow_blank=True,
        )

    def add_argument(self, parser: ArgumentParser, name: str) -> None:
        parser.add_argument(f"--{name}", default=self.default, help=str(self.label), required=self.required)

    def for_audit(self, value: Any) -> Any:
        return None if self.untold else value

    def from_command(self, value: Any) -> str | None:
        if value is None:
            return None
        if len(value) > self.longest:
            raise CommandError(f"At most {self.longest} characters: {value[:40]}…")
        return storable(value)


class OtherText(TextInput):
    """Instead of the text that there is; None: that stays."""

    __slots__ = ()
    default: ClassVar[str | None] = None


REASON = TextInput(_("Reason (visible to everyone)"), LONGEST_REASON, long=True)
REASON_NEEDED = replace(REASON, required=True)


@dataclass(frozen=True, slots=True)
class ChoiceInput(Input):
    """One of `choices`, each a value with its label; empty: none of them."""

    label: Any
    choices: Sequence[tuple[str, Any]]
    default: ClassVar[str] = ""

    def form_field(self) -> forms.Field:
        return forms.ChoiceField(label=self.label, choices=self.choices, required=False)

    def rest_field(self) -> "serializers.Field[Any, Any, Any, Any]":
        return serializers.ChoiceField(choices=self.choices, required=False, allow_blank=True, default="")

    def add_argument(self, parser: ArgumentParser, name: str) -> None:
        values = [value for value, _label in self.choices]
        parser.add_argument(f"--{name}", choices=values, default="", help=str(self.label))


@dataclass(frozen=True, slots=True)
class ChoicesInput(Input):
    """Some of `choices`, each a value with its label, or none of them."""

    label: Any
    choices: Sequence[tuple[str, Any]]
    default: ClassVar[Sequence[str]] = ()

    def form_field(self) -> forms.Field:
        return forms.MultipleChoiceField(label=self.label, choices=self.choices, required=False)

    def rest_field(self) -> "serializers.Field[Any, Any, Any, Any]":
        one = serializers.ChoiceField(choices=[value for value, _label in self.choices])
        return serializers.ListField(child=one, required=False, default=list)

    def add_argument(self, parser: ArgumentParser, name: str) -> None:
        values = [value for value, _label in self.choices]
        parser.add_argument(f"--{name}", nargs="*", choices=values, default=[], help=str(self.label))

    def for_audit(self, value: Any) -> list[str] | None:
        return list(value) or None


class _UntilWidget(forms.MultiWidget):
    def decompress(self, value: Any) -> list[Any]:
        return value or [None, None]


class UntilField(forms.MultiValueField):
    """One of some spans, or an instant in UTC. Its value is the pair."""

    def __init__(self, spans: Sequence[str]) -> None:
        chosen = [*((span, SPAN_LABELS[span]) for span in spans), (AT, _("until the time below"))]
        at = forms.DateTimeInput(
            attrs={"type": "datetime-local", "aria-label": _("Until")}, format="%Y-%m-%dT%H:%M"
        )
        fields = (forms.ChoiceField(choices=chosen), forms.DateTimeField(required=False, widget=at))
        label, help_text = _("For how long?"), _("In UTC, at most three months ahead.")
        widget = _UntilWidget([forms.Select(attrs={"aria-label": label}, choices=chosen), at])
        super().__init__(fields, label=label, help_text=help_text, widget=widget, require_all_fields=False)

    def compress(self, values: Any) -> Any:
        if values and values[0] == AT and not values[1]:
            raise forms.ValidationError(_("Enter the end time."))
        return values


@dataclass(frozen=True, slots=True)
class Instant(Input):
    """An instant, or None."""

    def form_field(self) -> forms.Field:
        return forms.DateTimeField(required=False)

    def rest_field(self) -> "serializers.Field[Any, Any, Any, Any]":
        return serializers.DateTimeField(required=False, default=None, allow_null=True)

    def add_argument(self, parser: ArgumentParser, name: str) -> None:
        parser.add_argument(f"--{name}", metavar="TIME", help="for example 2026-03-01T06:00:00+00:00")

    def from_command(self, value: Any) -> datetime | None:
        if not value:
            return None
        try:
            instant = parse_datetime(value)
            if instant is not None and timezone.is_aware(instant):
                return instant.astimezone(UTC)
        except (ValueError, OverflowError):  # no such day
            pass
        raise CommandError(
            f"{value} is not a timestamp with a UTC offset, for example 2026-03-01T06:00:00+00:00"
        )

    def for_audit(self, value: datetime | None) -> str | None:
        return value.isoformat() if value else None


@dataclass(frozen=True, slots=True)
class Until(Instant):
    """An instant, or None: until a person ends it. `required`: there is always one, and the page offers
    `spans` or an instant."""

    spans: Sequence[str] = tuple(SPANS)
    required: bool = False

    def form_field(self) -> forms.Field:
        if self.required:
            return UntilField(self.spans)
        return forms.ChoiceField(label=_("For how long?"), choices=OPEN_ENDED, required=False)

    def rest_field(self) -> "serializers.Field[Any, Any, Any, Any]":
        if self.required:
            return serializers.DateTimeField()
        return serializers.DateTimeField(required=False, default=None, allow_null=True)

    def add_argument(self, parser: ArgumentParser, name: str) -> None:
        help_text = "ends automatically at this time, for example 2026-03-01T06:00:00+00:00"
        parser.add_argument(f"--{name}", metavar="TIME", help=help_text, required=self.required)

    def from_form(self, value: Any, now: datetime) -> datetime | None:
        span, at = value if self.required else (value, None)
        return now + SPANS[span] if span in SPANS else at


@dataclass(frozen=True, slots=True)
class Seen(Input):
    """What the page has shown, as a fingerprint: who confirms something confirms just that. One that the
    page cannot have shown is another one."""

    default: ClassVar[str] = ""

    def form_field(self) -> forms.Field:
        return StorableField(widget=forms.HiddenInput, required=False)

    def rest_field(self) -> "serializers.Field[Any, Any, Any, Any]":
        return serializers.CharField(max_length=64)

    def add_argument(self, parser: ArgumentParser, name: str) -> None:
        parser.add_argument(f"--{name}", default="")

    def for_audit(self, value: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Flag(Input):
    """True, False, or None: as it is set elsewhere."""

    label: Any
    help_text: Any = ""

    def form_field(self) -> forms.Field:
        return forms.BooleanField(label=self.label, required=False, help_text=self.help_text)

    def rest_field(self) -> "serializers.Field[Any, Any, Any, Any]":
        return serializers.BooleanField(required=False, default=None, allow_null=True)

    def add_argument(self, parser: ArgumentParser, name: str) -> None:
        parser.add_argument(f"--{name.replace('_', '-')}", action="store_const", const=True, default=None)


@dataclass(frozen=True, slots=True)
class RowInput(Input):
    """A row that is named by its field `key`."""

    rows: Callable[[], QuerySet[Any]]
    key: str

    def form_field(self) -> forms.Field:
        return forms.ModelChoiceField(self.rows(), to_field_name=self.key)

    def rest_field(self) -> "serializers.Field[Any, Any, Any, Any]":
        return serializers.SlugRelatedField(slug_field=self.key, queryset=self.rows())

    def add_argument(self, parser: ArgumentParser, name: str) -> None:
        parser.add_argument(f"--{name}", required=True)

    def from_address(self, value: Any) -> Any:
        return get_object_or_404(self.rows(), **{self.key: value})

    def for_audit(self, value: Any) -> str | None:
        return str(getattr(value, self.key)) if value is not None else None

    def from_command(self, value: Any) -> Any:
        found = self.rows().filter(**{self.key: value}).first()
        if found is None:
            raise CommandError(f"There is no {value!r}.")
        return found
