"""Describes what a list is narrowed by: one filter for its page, for programs and under a name. Its fields
are declared, each with a label; they, and the filter as a whole, say what is wrong with what is asked for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, cast
from uuid import UUID

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters import rest_framework as rest_filters

from contract.typed import storable

# -- fields --------------------------------------------------------------------------------------------------
# REST describes each by its `kind` (a text unless said otherwise) and what it says `about` itself.


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
            raise ValidationError(
                _("Enter a date and time such as 2026-03-01T06:00 or 2026-03-01T06:00:00+00:00.")
            )
        if timezone.is_naive(at):
            at = timezone.make_aware(at)
        try:
            return at.astimezone(UTC)
        except OverflowError as error:
            raise ValidationError(_("Invalid date.")) from error

    def prepare_value(self, value: Any) -> Any:
        return value


class InstantFilter(django_filters.Filter):
    field_class, kind = InstantField, datetime


class IdFilter(django_filters.UUIDFilter):
    kind = UUID


class TextFilter(django_filters.CharFilter):
    """`strip=False`: of links, which bring what is stored: it may begin or end with a blank."""

    def __init__(self, label: Any, most: int, **options: Any) -> None:
        super().__init__(label=label, max_length=most, **options)


class OneOfFilter(django_filters.ChoiceFilter):
    """One of the choices, or all."""

    def __init__(self, label: Any, choices: Any, **options: Any) -> None:
        super().__init__(label=label, choices=choices, **{"empty_label": gettext_lazy("all"), **options})


class NameInput(forms.TextInput):
    """A text with suggestions: of hundreds of names a part is typed. Its field sets `names` and `note`."""

    names: Sequence[str] = ()
    note = ""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        listed, noted = f"{name}-names", f"{name}-note"
        more = {"list": listed, "autocomplete": "off", "spellcheck": "false"}
        if self.note:
            more["aria-describedby"] = noted
        field = super().render(name, value, {**(attrs or {}), **more}, renderer)
        options = format_html_join("", '<option value="{}"></option>', ((each,) for each in self.names))
        note = format_html('<p id="{}" class="small warn-text">{}</p>', noted, self.note) if self.note else ""
        return format_html('{}{}<datalist id="{}">{}</datalist>', note, field, listed, options)


class NameField(forms.CharField):
    """A name, with those that there are as suggestions. `known_only`: any other one is refused; else it is
    searched for, and the page says that nothing has this name now."""

    widget = NameInput

    def __init__(
        self, *, names: Callable[[], Iterable[str]], known_only: bool = False, **options: Any
    ) -> None:
        super().__init__(max_length=200, **options)
        self.names, self.known_only = names, known_only

    def clean(self, value: Any) -> Any:
        name = super().clean(value)
        if name and self.known_only and name not in set(self.names()):
            raise ValidationError(
                _("Unknown name “%(name)s”: choose a name from the list.") % {"name": name[:50]}
            )
        return name

    def get_bound_field(self, form: forms.BaseForm, field_name: str) -> forms.BoundField:
        names, value = list(self.names()), str(form.data.get(field_name, "")).strip()
        widget = cast(NameInput, self.widget)
        widget.names = names
        if value and value not in names and not self.known_only:
            widget.note = _("No existing object has this name. Only records of deleted objects can match.")
        bound: forms.BoundField = super().get_bound_field(form, field_name)
        return bound


class NamesFilter(django_filters.CharFilter):
    """One of the names that there are, by default also another one: of what was deleted rows are left."""

    field_class = NameField

    def __init__(self, label: Any, names: Callable[[], Iterable[str]], **options: Any) -> None:
        super().__init__(label=label, names=names, **options)


SPANS = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "7d": timedelta(days=7)}
SPAN_LABELS = [
    ("1h", gettext_lazy("last hour")),
    ("1d", gettext_lazy("last 24 hours")),
    ("7d", gettext_lazy("last 7 days")),
]


class SpanFilter(OneOfFilter):
    """`?span=1h`: rows whose `field_name` is not older than that."""

    def __init__(self, **options: Any) -> None:
        super().__init__(gettext_lazy("Time"), SPAN_LABELS, empty_label=gettext_lazy("any time"), **options)

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


# -- several values, each with a name ------------------------------------------------------------------------


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
            raise ValidationError(_("Enter at most %(n)s values.") % {"n": MOST_VALUES})
        return [self._pair(line) for line in lines]

    @staticmethod
    def _pair(line: str) -> Pair:
        name, equals, value = line.partition("=")
        if not equals or not name.strip() or len(name) > LONGEST_NAME or len(value) > LONGEST_VALUE:
            raise ValidationError(_("Use the format name=value."))
        return name.strip(), value.strip()


class PairsFilter(django_filters.Filter):
    field_class, about = PairsField, "`name=value`; repeatable."


# -- filters -------------------------------------------------------------------------------------------------


class ListFilter(django_filters.FilterSet):
    """Of one list; see docs/architecture/console.md, "A filter of a list".

    `quiet`: fields that are shown only where they are set: links lead there, nobody types them. `rarely`:
    folded until one of them is set, or until somebody looks for more. `several`: fields that an address may
    have more than once. `page_own`: parameters of an address that are of its page. `holds_anyway`: what the
    list shows where nothing else is asked for."""

    quiet: tuple[str, ...] = ()
    rarely: tuple[str, ...] = ()
    several: ClassVar[frozenset[str]] = frozenset()
    page_own: ClassVar[frozenset[str]] = frozenset()
    holds_anyway: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def part_of(cls, query: QueryDict) -> QueryDict:
        """Returns what of an address is the filter: without what is empty and without what is of its page. A
        name that nobody knows is kept: it is refused with what it may have meant."""
        kept = query.copy()
        for name, values in query.lists():
            if name in cls.page_own or not any(values):
                del kept[name]
        return kept

    @classmethod
    def unclear(cls, query: QueryDict) -> dict[str, str]:
        """Problems of its fields: a value that is missing, as an empty variable of a script leaves it, or
        twice. Where a program asks they are refused: a filter that is misunderstood must never find more than
        was meant."""
        problems = {}
        for name, values in query.lists():
            if name not in cls.base_filters:
                continue
            if not all(value.strip() for value in values):
                problems[name] = _("The value is missing: remove the parameter or enter a value.")
            elif len(values) > 1 and name not in cls.several:
                problems[name] = _("Specified more than once: only one value is allowed.")
        return problems

    @property
    def qs(self) -> QuerySet[Any]:
        """Nothing, where it is not understood: its fields say why."""
        rows: QuerySet[Any] = self.queryset.none() if self.is_bound and not self.is_valid() else super().qs
        return rows

    @property
    def is_set(self) -> bool:
        return any(value for name, value in self.data.items() if name in self.filters)

    @property
    def rare(self) -> list[str]:
        return [name for name in self.rarely if name in self.form.fields]

    @property
    def rare_is_set(self) -> bool:
        return any(self.form[name].value() for name in self.rare)

    @property
    def problem(self) -> str:
        """Returns what is wrong with it, in one line; empty: nothing."""
        if self.is_valid():
            return ""
        labels = {name: str(field.label) for name, field in self.form.fields.items()}
        return " ".join(
            " ".join([f"{labels[name]}:" if name in labels else "", *map(str, problems)]).strip()
            for name, problems in self.form.errors.items()
        )

    @property
    def words(self) -> list[tuple[str, str]]:
        """Label and value of each field that is set, as people read them; of a filter without a problem."""
        found = []
        for name, value in self.form.cleaned_data.items():
            if value in (None, "", []) or value == self.holds_anyway.get(name):
                continue
            field = self.form.fields[name]
            labels = {str(key): str(label) for key, label in getattr(field, "choices", ())}
            for each in value if isinstance(value, list) else [value]:
                text = "=".join(each) if isinstance(each, tuple) else str(each)
                found.append((str(field.label), labels.get(text, text)))
        return found


class SearchForm(forms.Form):
    filters: "SearchFilter"

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in self.data:
            if name not in self.fields and name not in self.filters.page_own:
                problem = _("Unknown filter parameter “%(name)s”.") % {"name": storable(str(name))[:50]}
                self.add_error(None, ValidationError(problem))
        for low, high in self.filters.ranges:
            first, last = cleaned.get(low), cleaned.get(high)
            if first is not None and last is not None and first > last:
                self.add_error(high, ValidationError(_("The range ends before it starts.")))
        if not self.errors:
            self.filters.asked = self.filters.meaning(cleaned)
        return cleaned


class SearchFilter(ListFilter):
    """Of a list that is looked through in bounded time, by a search of its own. It is checked as a whole:
    what is misunderstood finds nothing. `asked` is what it means, once it is valid; `ranges` are pairs of
    fields, of which the second is not before the first."""

    ranges: ClassVar[tuple[tuple[str, str], ...]] = (("since", "until"),)
    asked: Any

    class Meta:
        form = SearchForm

    @property
    def form(self) -> Any:
        form = super().form
        form.filters = self
        return form

    def meaning(self, cleaned: Mapping[str, Any]) -> Any:
        """Raises ValidationError for what only the rows or the rights of the person tell to be wrong."""
        raise NotImplementedError
