"""Watches the certificates that this site shows and sees."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.site.certificates import SOON, ends
from alerts.kinds import AlertKind, Observation
from alerts.models import Severity
from alerts.rules import Thresholds
from console.ui.amounts import number


def _observe(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """`value`: days since the last 30 began, plus 1."""
    for what, end in sorted(ends().items(), key=lambda each: each[1]):
        left = (end - now) / timedelta(days=1)
        yield Observation(
            what, 1.0 + SOON.days - left, facts={"what": what, "end": end.isoformat(), "over": left <= 0}
        )


def _says(facts: Mapping[str, Any], value: float) -> str:
    text = (
        _("The certificate %(what)s expired on %(date)s.")
        if facts["over"]
        else _("The certificate %(what)s expires on %(date)s.")
    )
    return text % {"what": facts["what"], "date": date_format(datetime.fromisoformat(facts["end"]))}


EXPIRES = AlertKind(
    name="certificate_expires",
    label=gettext_lazy("Certificate expires"),
    severity=Severity.WARNING,
    limits=Thresholds(1.0, 1.0),
    unit=gettext_lazy("days since the last 30 days of a certificate began, plus 1"),
    says=_says,
    measure=lambda value: number(value - 1, 0) if value >= 1 else "",
    what_to_do=gettext_lazy(
        "Renew it before it expires: afterwards connections are refused. An installation started "
        "with ./ma up --tls renews its own with ./ma down, ./ma up. Restart the web process after "
        "renewing the certificate of the site."
    ),
    url=lambda facts: reverse("admin:health"),
    observe=_observe,
)

KINDS = (EXPIRES,)
