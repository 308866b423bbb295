"""The one filter of failure protocols: fields of an address, each with a label, checked."""

from collections.abc import Mapping
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from agents.models import LaunchSetting, Server
from console import filters as of_lists
from console.filters import SPAN_LABELS, SPANS, InstantFilter
from contract.text import storable
from failures.finding.asked import Asked
from failures.finding.meaning import asked_for
from failures.models import FailureProtocol
from failures.models.protocol import DISPOSITIONS, OUTCOMES

TEMPORARY = [("true", gettext_lazy("only temporary")), ("false", gettext_lazy("not temporary"))]
COUNTED_OR_NOT = [
    ("true", gettext_lazy("only counted ones")),
    ("false", gettext_lazy("only not counted ones")),
]
# Parameters of an address that are of its page, not of the filter.
PAGE_OWN = frozenset(
    {"after", "before", "csrfmiddlewaretoken", "file", "format", "page", "page_size", "shown", "top"}
)


class NamesFilter(django_filters.ChoiceFilter):
    """One of the names that there are, or another one that an address names: of what was deleted protocols
    are left."""

    def __init__(self, names: Any, **options: Any) -> None:
        super().__init__(choices=lambda: [(name, name) for name in names()], **options)

    @property
    def field(self) -> Any:
        field = super().field
        field.valid_value = lambda value: len(value) <= 200
        return field


def filter_part(query: QueryDict) -> QueryDict:
    return of_lists.filter_part(query, PAGE_OWN)


def setting_keys() -> list[str]:
    return list(LaunchSetting.objects.order_by("key").values_list("key", flat=True))


def server_names() -> list[str]:
    return list(Server.objects.order_by("name").values_list("name", flat=True))


def _text(label: Any, most: int) -> django_filters.CharFilter:
    return django_filters.CharFilter(label=label, max_length=most, strip=True)


def _as_stored(label: Any, most: int) -> django_filters.CharFilter:
    """Of links, which bring what is stored: it may begin or end with a blank."""
    return django_filters.CharFilter(label=label, max_length=most, strip=False)


class ProtocolFilter(django_filters.FilterSet):
    """`asked` is what it means, once it is valid."""

    setting = NamesFilter(setting_keys, label=gettext_lazy("Setting"), empty_label=gettext_lazy("all"))
    server = NamesFilter(server_names, label=gettext_lazy("Server"), empty_label=gettext_lazy("all"))
    exception = _text(gettext_lazy("Exception contains"), 255)
    text = _text(gettext_lazy("Text contains"), 200)
    span = django_filters.ChoiceFilter(
        choices=SPAN_LABELS, empty_label=gettext_lazy("any time"), label=gettext_lazy("Time")
    )
    message_key = _text(gettext_lazy("Message key"), 255)
    since = InstantFilter(label=gettext_lazy("From"))
    until = InstantFilter(label=gettext_lazy("Before"))
    temporary = django_filters.ChoiceFilter(
        choices=TEMPORARY, label=pgettext_lazy("failures", "Temporary"), empty_label=gettext_lazy("all")
    )
    counted = django_filters.ChoiceFilter(
        choices=COUNTED_OR_NOT, label=gettext_lazy("Counted by the breaker"), empty_label=gettext_lazy("all")
    )
    outcome = django_filters.ChoiceFilter(
        choices=[(outcome.value, label) for outcome, label in OUTCOMES.items()],
        label=gettext_lazy("How it ended"),
        empty_label=gettext_lazy("all"),
    )
    disposition = django_filters.ChoiceFilter(
        choices=[(disposition.value, label) for disposition, label in DISPOSITIONS.items()],
        label=gettext_lazy("What became of the message"),
        empty_label=gettext_lazy("all"),
    )
    activation = django_filters.UUIDFilter(label=gettext_lazy("Activation"))
    fingerprint = _as_stored(gettext_lazy("Fingerprint"), 64)
    exception_type = _as_stored(gettext_lazy("Exception"), 255)
    # Shown only where they are set: links lead there, nobody types them.
    quiet = ("activation", "fingerprint", "exception_type")
    # Folded until one of them is set, or until somebody looks for more.
    rarely = ("since", "until", "temporary", "counted", "outcome", "disposition")

    class Meta:
        model = FailureProtocol
        fields: list[str] = []

    def __init__(self, data: Mapping[str, Any], **options: Any) -> None:
        super().__init__(data, FailureProtocol.objects.none(), **options)

    def get_form_class(self) -> type[forms.Form]:
        fields = {name: each.field for name, each in self.filters.items()}
        return type("ProtocolForm", (ProtocolForm,), fields)

    def filter_queryset(self, queryset: QuerySet[FailureProtocol]) -> QuerySet[FailureProtocol]:
        return queryset  # see failures.finding.search

    @property
    def asked(self) -> Asked:
        """Of a valid one."""
        asked: Asked = self.form.asked
        return asked

    @property
    def rare(self) -> list[str]:
        return [name for name in self.rarely if name in self.form.fields]

    @property
    def rare_is_set(self) -> bool:
        return any(self.form[name].value() for name in self.rare)

    @property
    def problem(self) -> str:
        """What is wrong with it, in one line; empty: nothing."""
        if self.is_valid():
            return ""
        labels = {name: str(field.label) for name, field in self.form.fields.items()}
        return " ".join(
            " ".join([f"{labels[name]}:" if name in labels else "", *map(str, problems)]).strip()
            for name, problems in self.form.errors.items()
        )


class ProtocolForm(forms.Form):
    """Checks what is asked for as a whole: a filter that is misunderstood must never find more than was
    meant."""

    asked = Asked()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ("setting", "server"):
            _offer(self.fields[name], str(self.data.get(name, "")))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in self.data:
            if name not in self.fields and name not in PAGE_OWN:
                problem = _("There is no filter “%(name)s”.") % {"name": storable(str(name))[:50]}
                self.add_error(None, ValidationError(problem))
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and since > until:
            self.add_error("until", ValidationError(_("This is before the begin.")))
        if not self.errors:
            self.asked = asked_for(cleaned, timezone.now(), SPANS)
        return cleaned


def _offer(field: Any, value: str) -> None:
    """Puts what an address names among the choices, where it can be read."""
    there = {name for name, _label in field.choices}
    if value not in there and value.isprintable() and field.valid_value(value):
        field.choices = [*field.choices, (value, value)]
