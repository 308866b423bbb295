"""The one filter of failure protocols."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy, pgettext_lazy

from agents.models import LaunchSetting, Server
from console.filters import (
    IdFilter,
    InstantFilter,
    NamesFilter,
    OneOfFilter,
    SearchFilter,
    SpanFilter,
    TextFilter,
)
from failures.models import FailureProtocol
from failures.models.protocol import DISPOSITIONS, OUTCOMES
from failures.protocols.conditions import Query, asked_for

TEMPORARY = [("true", gettext_lazy("only temporary")), ("false", gettext_lazy("not temporary"))]
COUNTED_OR_NOT = [
    ("true", gettext_lazy("only counted ones")),
    ("false", gettext_lazy("only not counted ones")),
]


def setting_keys() -> list[str]:
    return list(LaunchSetting.objects.order_by("key").values_list("key", flat=True))


def server_names() -> list[str]:
    return list(Server.objects.order_by("name").values_list("name", flat=True))


class ProtocolFilter(SearchFilter):
    """`failures.protocols.search` finds what it asks for."""

    setting = NamesFilter(gettext_lazy("Setting"), setting_keys)
    server = NamesFilter(gettext_lazy("Server"), server_names)
    exception = TextFilter(gettext_lazy("Exception contains"), 255)
    text = TextFilter(gettext_lazy("Text contains"), 200)
    span = SpanFilter()
    message_key = TextFilter(gettext_lazy("Message key"), 255)
    since = InstantFilter(label=gettext_lazy("From"))
    until = InstantFilter(label=gettext_lazy("Before"))
    temporary = OneOfFilter(pgettext_lazy("failures", "Temporary"), TEMPORARY)
    counted = OneOfFilter(gettext_lazy("Counted by the breaker"), COUNTED_OR_NOT)
    outcome = OneOfFilter(
        gettext_lazy("How it ended"), [(each.value, name) for each, name in OUTCOMES.items()]
    )
    disposition = OneOfFilter(
        gettext_lazy("What became of the message"),
        [(each.value, name) for each, name in DISPOSITIONS.items()],
    )
    activation = IdFilter(label=gettext_lazy("Activation"))
    fingerprint = TextFilter(gettext_lazy("Fingerprint"), 64, strip=False)
    exception_type = TextFilter(gettext_lazy("Exception"), 255, strip=False)
    quiet = ("activation", "fingerprint", "exception_type")
    rarely = ("since", "until", "temporary", "counted", "outcome", "disposition")
    page_own = frozenset(
        {"after", "before", "csrfmiddlewaretoken", "file", "format", "page", "page_size", "shown", "top"}
    )
    asked = Query()

    def __init__(self, data: Mapping[str, Any], **options: Any) -> None:
        super().__init__(data, FailureProtocol.objects.none(), **options)

    def meaning(self, cleaned: Mapping[str, Any]) -> Query:
        return asked_for(cleaned, timezone.now())
