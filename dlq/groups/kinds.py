"""By what dead letters are put into groups, and the filter that finds the letters of one group."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Kind:
    """`column` is that of a letter, empty for days; `field` the one of the filter (`dlq.finding.filters`)."""

    name: str
    label: str | Promise
    column: str
    field: str

    def query(self, value: Any) -> str:
        """The filter of a group, as of an address."""
        if not self.column:
            day: date = value
            return urlencode({"since": day.isoformat(), "until": (day + timedelta(days=1)).isoformat()})
        return urlencode({self.field: value} if value else {"without": self.field})

    def value(self, stored: Any) -> Any:
        """As both databases give it."""
        if self.name == "activation" and stored:
            return str(UUID(str(stored)))
        return stored or ""


KINDS = {
    kind.name: kind
    for kind in (
        Kind("fingerprint", _("Fault"), "fingerprint", "fingerprint"),
        Kind("exception", _("Exception"), "exception_type", "exception_type"),
        Kind("server", _("Server"), "server_name", "server"),
        Kind("activation", _("Activation"), "activation_uuid", "activation"),
        Kind("day", _("Day"), "", "since"),
    )
}


def kind_named(name: str) -> Kind:
    """The first one for a name that there is not."""
    return KINDS.get(name) or KINDS["fingerprint"]
