"""The one filter of dead letters: fields of an address, each with a label, checked, never evaluated as a
language."""

from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.filters import SPAN_LABELS, InstantFilter
from contract.text import storable
from dlq.dead_letters.masks import MASK, Masks, everybodys_masks, masks_for
from dlq.models import DeadLetter, LetterState
from dlq.search.conditions import Asked, PairsFilter, WholeNumberFilter, asked_for

EVERY_STATE = "every"
STATES = [*LetterState.choices, (EVERY_STATE, gettext_lazy("every state"))]
# What nothing is known of: of letters without a protocol.
UNKNOWN_ONES = [
    ("fingerprint", gettext_lazy("Fingerprint")),
    ("exception_type", gettext_lazy("Exception")),
    ("server", gettext_lazy("Server")),
    ("activation", gettext_lazy("Activation")),
]
MUTED = [("no", gettext_lazy("without muted ones")), ("yes", gettext_lazy("only muted ones"))]
# Parameters of an address that are of its page, not of the filter.
OF_LISTS = {"before", "cursor", "format", "page", "page_size"}
OF_SCOPES = {"all", "group", "letter", "letters", "match"}
PAGE_OWN = frozenset({"by", "csrfmiddlewaretoken", "in", "saved", *OF_LISTS, *OF_SCOPES})
# What a list shows where nothing else is asked for.
HOLDS_ANYWAY = {"state": LetterState.DEAD.value}


def _text(label: Any, most: int = 300) -> django_filters.CharFilter:
    return django_filters.CharFilter(label=label, max_length=most, strip=True)


# Of which an address may have more than one.
SEVERAL = frozenset({"prop"})


class LetterFilter(django_filters.FilterSet):
    """`asked` is what it means, once it is valid. `queue`: of this one only. `at`: the instant that it was
    asked at, None: now. Built by `dlq.search.visibility.found`."""

    setting = _text(gettext_lazy("Setting"))
    destination = _text(gettext_lazy("Destination"))
    queue = _text(gettext_lazy("Queue"))
    exception = _text(gettext_lazy("Exception contains"), 255)
    text = _text(gettext_lazy("Words in body or properties"), 200)
    prop = PairsFilter(label=gettext_lazy("Property = value"))
    span = django_filters.ChoiceFilter(
        choices=SPAN_LABELS, empty_label=gettext_lazy("any time"), label=gettext_lazy("Time")
    )
    since = InstantFilter(label=gettext_lazy("From"))
    until = InstantFilter(label=gettext_lazy("Before"))
    server = _text(gettext_lazy("Server"), 63)
    activation = django_filters.CharFilter(label=gettext_lazy("Activation"), max_length=36)
    delivered_from = WholeNumberFilter(label=gettext_lazy("Attempts from"))
    delivered_to = WholeNumberFilter(label=gettext_lazy("Attempts to"))
    replays_from = WholeNumberFilter(label=gettext_lazy("Replays from"))
    replays_to = WholeNumberFilter(label=gettext_lazy("Replays to"))
    muted = django_filters.ChoiceFilter(
        choices=MUTED, empty_label=gettext_lazy("muted or not"), label=gettext_lazy("Known faults")
    )
    state = django_filters.ChoiceFilter(choices=STATES, label=gettext_lazy("State"), empty_label=None)
    fingerprint = _text(gettext_lazy("Fingerprint"), 64)
    exception_type = _text(gettext_lazy("Exception"), 255)
    message_key = _text(gettext_lazy("Message key"), 255)
    without = django_filters.ChoiceFilter(
        choices=UNKNOWN_ONES, empty_label=gettext_lazy("known or not"), label=gettext_lazy("Not known is the")
    )
    # Shown only where they are set: links lead there, nobody types them.
    quiet: tuple[str, ...] = ("fingerprint", "exception_type", "message_key", "without", "queue")
    # Folded until one of them is set, or until somebody looks for more.
    rarely = (
        "prop",
        "since",
        "until",
        "activation",
        "delivered_from",
        "delivered_to",
        "replays_from",
        "replays_to",
    )

    class Meta:
        model = DeadLetter
        fields: list[str] = []

    def __init__(
        self,
        data: Any,
        queryset: QuerySet[DeadLetter],
        *,
        request: HttpRequest | None = None,
        user: Any,
        queue: str = "",
        at: datetime | None = None,
    ) -> None:
        super().__init__(data, queryset, request=request)
        self.user, self.queue, self.at = user, queue, at
        if queue:  # its setting and destination are known
            self.quiet = (*self.quiet, "setting", "destination")
        self.asked = Asked()

    def get_form_class(self) -> type[forms.Form]:
        fields = {name: each.field for name, each in self.filters.items()}
        return type("LetterForm", (LetterForm,), fields)

    @property
    def form(self) -> Any:
        made = not hasattr(self, "_form")
        form = super().form
        if made:
            form.masks, form.queue, form.at = masks_for(self.user), self.queue, self.at
        return form

    def filter_queryset(self, queryset: QuerySet[DeadLetter]) -> QuerySet[DeadLetter]:
        self.asked = self.form.asked
        return queryset.filter(self.asked.q)

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


class LetterForm(forms.Form):
    """Checks what is asked for as a whole: a filter that is misunderstood must never find more than was
    meant."""

    masks: Any = None
    queue = ""
    at: datetime | None = None
    asked = Asked()

    def clean_activation(self) -> UUID | None:
        value = self.cleaned_data["activation"]
        if not value:
            return None
        try:
            return UUID(value)
        except ValueError as error:
            raise ValidationError(_("This is no id of an activation.")) from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in self.data:
            if name not in self.fields and name not in PAGE_OWN:
                problem = _("There is no filter “%(name)s”.") % {"name": storable(str(name))[:50]}
                self.add_error(None, ValidationError(problem))
        for low, high in (
            ("delivered_from", "delivered_to"),
            ("replays_from", "replays_to"),
            ("since", "until"),
        ):
            first, last = cleaned.get(low), cleaned.get(high)
            if first is not None and last is not None and first > last:
                self.add_error(high, ValidationError(_("This is before the begin.")))
        if not self.errors:
            self.asked = asked_for(self, cleaned)
        return cleaned


# -- what somebody looked for, as others may see it ----------------------------------------------------------


def query_for_all(query: str, setting_key: str = "") -> str:
    """As somebody without any right may see it."""
    return query_told(query, everybodys_masks(), setting_key) if "prop" in query else query


def query_told(query: str, masks: Masks, setting_key: str = "") -> str:
    """A filter as of an address, without the values of masked properties: whoever reads it would know that a
    letter has them. Of `setting_key`; without one of letters of any setting."""
    data = QueryDict(query).copy()
    if not masks.any or "prop" not in data:
        return query
    keys = (setting_key,) if setting_key else ()
    told = []
    for pair in data.getlist("prop"):
        name, equals, _value = pair.partition("=")
        told.append(f"{name}={MASK}" if equals and masks.refusal(name.strip(), keys) else pair)
    data.setlist("prop", told)
    return data.urlencode().replace(quote(MASK), MASK)
