"""The one filter of failure protocols, what it asks of them, and what that means to the database."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import F, Field, Q, Value
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from agents.models import LaunchSetting, Server
from console.database.json_values import HasValue, WantedValue
from console.database.texts import parted, pattern
from console.filters import (
    SPANS,
    IdFilter,
    InstantFilter,
    NamesFilter,
    OneOfFilter,
    PairsFilter,
    SearchFilter,
    SpanFilter,
    TextFilter,
)
from contract.outcomes import Outcome
from contract.typed import storable
from failures.hooks import masked_properties
from failures.models import FailureProtocol
from failures.models.protocol import DISPOSITIONS, OUTCOMES


@dataclass(frozen=True, slots=True)
class Start:
    """The begin of an index that goes on with the instant. `exact`: it holds no row that is not of the
    condition."""

    q: Q
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the rows of the condition `name`, in the order of time: its starts together hold all of
    them."""

    name: str
    starts: tuple[Start, ...]


BY_TIME = Way("", (Start(Q()),))


@dataclass(frozen=True, slots=True)
class Query:
    """`conditions` by name are all but the time, such that no index is used for them: SQLite, which keeps no
    statistics, would take the wrong one. `message_key`, `properties`: an index knows its rows, in no order.
    `since` inclusive, `until` exclusive."""

    conditions: Mapping[str, Q] = field(default_factory=dict)
    ways: tuple[Way, ...] = ()
    message_key: str = ""
    properties: tuple[WantedValue, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    def came_after(self, instant: datetime) -> "Query":
        """Leaves out what had not occurred by then though it was there: a clock that is ahead."""
        ahead = Q(occurred_at__lte=instant) | Q(received_at__gt=instant)
        return replace(self, conditions={**self.conditions, "came": ahead})

    @property
    def rest(self) -> Q:
        return Q(*self.conditions.values())

    def on(self, way: Way, start: Start) -> Q:
        """Returns what the rows at a start of a way have to be: an index alone answers where nothing else is
        asked for."""
        others = [q for name, q in self.conditions.items() if not (start.exact and name == way.name)]
        return Q(start.q, *others)

    @property
    def times(self) -> Q:
        when = Q()
        if self.since is not None:
            when &= Q(occurred_at__gte=self.since)
        if self.until is not None:
            when &= Q(occurred_at__lt=self.until)
        return when


def read_as(column: str, value: Any) -> Q:
    """`column` = `value`, by looking at the row."""
    return Q(Exact(Coalesce(F(column), Value(None), output_field=_field(column)), value))


def _field(column: str) -> "Field[Any, Any]":
    found = FailureProtocol._meta.get_field(column)
    assert isinstance(found, Field)
    return found


# -- what the fields of the filter mean for the rows ---------------------------------------------------------


EXACT = {
    "setting": "setting_key",
    "server": "server_name",
    "exception_type": "exception_type",
    "activation": "activation_uuid",
    "fingerprint": "fingerprint",
    "message_key": "message_key",
    "outcome": "outcome",
    "disposition": "disposition",
}
PARTS = {"exception": "exception_type__icontains"}
# What was only noted is stored as temporary, for nothing failed; whoever looks for temporary failures does
# not mean it.
FLAGS = {
    "temporary": {"true": Q(temporary=True) & ~Q(outcome=Outcome.NOTED.value), "false": Q(temporary=False)},
    "counted": {"true": Q(counted=True), "false": Q(counted=False)},
}


# {setting key: names of properties that somebody may not see}
Masked = Mapping[str, frozenset[str]]


def asked_for(cleaned: Mapping[str, Any], now: datetime, masked: Masked) -> Query:
    """Returns the query of a valid form. Raises ValidationError for a property that is masked."""
    conditions = {
        name: read_as(column, value) for name, column in EXACT.items() if (value := cleaned.get(name))
    }
    conditions |= {
        name: Q(**{lookup: value}) for name, lookup in PARTS.items() if (value := cleaned.get(name))
    }
    if text := cleaned.get("text"):
        conditions["text"] = _text(text)
    conditions |= {name: means[value] for name, means in FLAGS.items() if (value := cleaned.get(name))}
    properties = tuple(_properties(cleaned, masked))
    conditions |= {
        f"property {place}": Q(HasValue("properties", wanted=each)) for place, each in enumerate(properties)
    }
    since = cleaned.get("since")
    if span := cleaned.get("span"):
        since = max(filter(None, (since, begin := now - SPANS[span])))
        # What has not occurred yet has a clock that is ahead: then the receipt counts.
        conditions["span"] = Q(occurred_at__lte=now) | Q(received_at__gte=begin)
    return Query(
        conditions,
        tuple(_ways(cleaned)),
        cleaned.get("message_key") or "",
        properties,
        since,
        cleaned.get("until"),
    )


def _text(text: str) -> Q:
    """Phrases in quotes, and what stands beside them as one part of the text."""
    phrases, rest = parted(text)
    where = Q(exception_text__icontains=rest) if rest else Q()
    for phrase in phrases:
        where &= Q(exception_text__iregex=pattern(phrase))
    return where


def _properties(cleaned: Mapping[str, Any], masked: Masked) -> Iterator[WantedValue]:
    """A value of whatever name is looked for under those names alone that no setting masks: an answer would
    tell it as well as a look at it."""
    if value := cleaned.get("value"):
        yield WantedValue(storable(value), hidden=_names(masked.values()))
    key = cleaned.get("setting") or ""
    hidden = masked[key] if key in masked else _names(masked.values())
    wrong: dict[str, list[str]] = defaultdict(list)
    for name, value in cleaned.get("prop") or ():
        if name in hidden:
            wrong["prop"].append(
                _(
                    "Cannot use the property “%(name)s”: it is masked. Ask for the permission “Can see "
                    "masked properties of dead letters”."
                )
                % {"name": name}
            )
        yield WantedValue(storable(value), storable(name))
    if wrong:
        raise ValidationError(wrong)


def _names(lists: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*lists)


def _ways(cleaned: Mapping[str, Any]) -> Iterator[Way]:
    if activation := cleaned.get("activation"):
        yield Way("activation", (Start(Q(activation_uuid=activation)),))
    if fingerprint := cleaned.get("fingerprint"):
        yield Way("fingerprint", (Start(Q(fingerprint=fingerprint)),))
    if key := cleaned.get("setting"):
        yield _of_name("setting", LaunchSetting.objects.filter(key=key).values_list("pk", flat=True).first())
    if name := cleaned.get("server"):
        yield _of_name("server", Server.objects.filter(name=name).values_list("pk", flat=True).first())


def _of_name(column: str, number: int | None) -> Way:
    """What is of another row of this name, or of one that was deleted, has no number any more."""
    starts = [Start(Q(**{column: number}))] if number is not None else []
    nameless = Q(**{f"{column}__isnull": True})
    if number is None or FailureProtocol.objects.filter(nameless).exists():
        starts.append(Start(nameless, exact=False))
    return Way(column, tuple(starts))


TEMPORARY = [("true", gettext_lazy("only temporary")), ("false", gettext_lazy("not temporary"))]
COUNTED_OR_NOT = [
    ("true", gettext_lazy("counted only")),
    ("false", gettext_lazy("uncounted only")),
]


def setting_keys() -> list[str]:
    return list(LaunchSetting.objects.order_by("key").values_list("key", flat=True))


def server_names() -> list[str]:
    return list(Server.objects.order_by("name").values_list("name", flat=True))


class ProtocolFilter(SearchFilter):
    """`failures.protocols.search` finds what it asks for. `user` None: somebody without any right."""

    setting = NamesFilter(gettext_lazy("Setting"), setting_keys)
    server = NamesFilter(gettext_lazy("Server"), server_names)
    exception = TextFilter(gettext_lazy("Exception contains"), 255)
    text = TextFilter(gettext_lazy("Text contains"), 200)
    span = SpanFilter()
    message_key = TextFilter(gettext_lazy("Message key"), 255)
    prop = PairsFilter(label=gettext_lazy("Property = value"))
    value = TextFilter(gettext_lazy("Value of any property"), 500)
    since = InstantFilter(label=gettext_lazy("From"))
    until = InstantFilter(label=gettext_lazy("Before"))
    temporary = OneOfFilter(pgettext_lazy("failures", "Temporary"), TEMPORARY)
    counted = OneOfFilter(gettext_lazy("Counted by the breaker"), COUNTED_OR_NOT)
    outcome = OneOfFilter(gettext_lazy("Outcome"), [(each.value, name) for each, name in OUTCOMES.items()])
    disposition = OneOfFilter(
        gettext_lazy("Message outcome"),
        [(each.value, name) for each, name in DISPOSITIONS.items()],
    )
    activation = IdFilter(label=gettext_lazy("Activation"))
    fingerprint = TextFilter(gettext_lazy("Fingerprint"), 64, strip=False)
    exception_type = TextFilter(gettext_lazy("Exception"), 255, strip=False)
    quiet = ("activation", "fingerprint", "exception_type")
    rarely = ("prop", "value", "since", "until", "temporary", "counted", "outcome", "disposition")
    several = frozenset({"prop"})
    page_own = frozenset(
        {"after", "before", "csrfmiddlewaretoken", "file", "format", "page", "page_size", "shown", "top"}
    )
    asked = Query()

    def __init__(self, data: Mapping[str, Any], *, user: Any = None, **options: Any) -> None:
        super().__init__(data, FailureProtocol.objects.none(), **options)
        self.user = user

    def meaning(self, cleaned: Mapping[str, Any]) -> Query:
        asks = cleaned.get("prop") or cleaned.get("value")
        masked: dict[str, frozenset[str]] = {}
        for each in masked_properties(self.user) if asks else ():
            masked |= each
        return asked_for(cleaned, timezone.now(), masked)
