"""The one filter of dead letters, and what somebody looked for as others may see it."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote

from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy

from console.filters import (
    IdFilter,
    InstantFilter,
    OneOfFilter,
    PairsFilter,
    SearchFilter,
    SpanFilter,
    TextFilter,
)
from dlq.dead_letters.masks import MASK, Masks, everybodys_masks, masks_for
from dlq.models import DeadLetter, LetterState
from dlq.search.conditions import Query, WholeNumberFilter, asked_for

EVERY_STATE = "every"
STATES = [*LetterState.choices, (EVERY_STATE, gettext_lazy("any state"))]
# What nothing is known of: of dead letters without a protocol.
UNKNOWN_ONES = [
    ("fingerprint", gettext_lazy("Fingerprint")),
    ("exception_type", gettext_lazy("Exception")),
    ("server", gettext_lazy("Server")),
    ("activation", gettext_lazy("Activation")),
]
MUTED = [("no", gettext_lazy("without known errors")), ("yes", gettext_lazy("known errors only"))]
# Parameters of an address that are of its page: of a list, of what is chosen from it.
OF_LISTS = {"before", "cursor", "format", "page", "page_size"}
OF_SCOPES = {"all", "group", "letter", "letters", "match"}


class LetterFilter(SearchFilter):
    """`queue`: of this one only. `at`: the instant that it was asked at, None: now. Built by
    `dlq.search.visibility.found`."""

    setting = TextFilter(gettext_lazy("Setting"), 300)
    destination = TextFilter(gettext_lazy("Destination"), 300)
    queue = TextFilter(gettext_lazy("Queue"), 300)
    exception = TextFilter(gettext_lazy("Exception contains"), 255)
    text = TextFilter(gettext_lazy("Words in body or properties"), 200)
    prop = PairsFilter(label=gettext_lazy("Property = value"))
    value = TextFilter(gettext_lazy("Value of any property"), 500)
    span = SpanFilter()
    since = InstantFilter(label=gettext_lazy("From"))
    until = InstantFilter(label=gettext_lazy("Before"))
    server = TextFilter(gettext_lazy("Server"), 63)
    activation = IdFilter(
        label=gettext_lazy("Activation"),
        error_messages={"invalid": gettext_lazy("Invalid activation id.")},
    )
    delivered_from = WholeNumberFilter(label=gettext_lazy("Attempts from"))
    delivered_to = WholeNumberFilter(label=gettext_lazy("Attempts to"))
    replays_from = WholeNumberFilter(label=gettext_lazy("Replays from"))
    replays_to = WholeNumberFilter(label=gettext_lazy("Replays to"))
    muted = OneOfFilter(
        gettext_lazy("Known errors"), MUTED, empty_label=gettext_lazy("with or without known errors")
    )
    state = OneOfFilter(gettext_lazy("State"), STATES, empty_label=None)
    fingerprint = TextFilter(gettext_lazy("Fingerprint"), 64)
    exception_type = TextFilter(gettext_lazy("Exception"), 255)
    message_key = TextFilter(gettext_lazy("Message key"), 255)
    without = OneOfFilter(
        gettext_lazy("Missing"), UNKNOWN_ONES, empty_label=gettext_lazy("with or without data")
    )
    quiet: tuple[str, ...] = ("fingerprint", "exception_type", "message_key", "without", "queue")
    rarely = (
        "prop",
        "value",
        "since",
        "until",
        "activation",
        "delivered_from",
        "delivered_to",
        "replays_from",
        "replays_to",
    )
    several = frozenset({"prop"})
    page_own = frozenset({"by", "csrfmiddlewaretoken", "in", "saved", *OF_LISTS, *OF_SCOPES})
    holds_anyway = {"state": LetterState.DEAD.value}
    ranges = (("delivered_from", "delivered_to"), ("replays_from", "replays_to"), ("since", "until"))
    asked = Query()

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
        self.user, self.of_queue, self.at = user, queue, at
        if queue:  # its setting and destination are known
            self.quiet = (*self.quiet, "setting", "destination")

    @cached_property
    def masks(self) -> Masks:
        """Those of the person."""
        return masks_for(self.user)

    def meaning(self, cleaned: Mapping[str, Any]) -> Query:
        return asked_for(cleaned, self.masks, queue=self.of_queue, at=self.at or timezone.now())

    def filter_queryset(self, queryset: QuerySet[DeadLetter]) -> QuerySet[DeadLetter]:
        return queryset.filter(self.asked.q)


# -- what somebody looked for, as others may see it ----------------------------------------------------------


def query_for_all(query: str, setting_key: str = "") -> str:
    """Returns the query as somebody without any right may see it."""
    return redacted_query(query, everybodys_masks(), setting_key) if "prop" in query else query


def redacted_query(query: str, masks: Masks, setting_key: str = "") -> str:
    """A filter as of an address, without the values of masked properties: whoever reads it would know that a
    dead letter has them. Of `setting_key`; without one of dead letters of any setting."""
    data = QueryDict(query).copy()
    if not masks.any or "prop" not in data:
        return query
    keys = (setting_key,) if setting_key else ()
    parts = []
    for pair in data.getlist("prop"):
        name, equals, _value = pair.partition("=")
        parts.append(f"{name}={MASK}" if equals and masks.refusal(name.strip(), keys) else pair)
    data.setlist("prop", parts)
    return data.urlencode().replace(quote(MASK), MASK)
