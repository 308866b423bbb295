"""Describes the period that charts of a page show, and which one they are compared with: parameters of the
address, bounded, so that it works without scripts and can be sent to somebody."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.filters import InstantField

RANGE, FROM, UNTIL, COMPARE = "range", "from", "until", "compare"
DEFAULT, OWN = "24h", "own"
RANGES: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "1y": timedelta(days=365),
}
LABELS: Mapping[str, str | Promise] = {
    "1h": gettext_lazy("1 h"),
    "6h": gettext_lazy("6 h"),
    "24h": gettext_lazy("24 h"),
    "7d": gettext_lazy("7 days"),
    "30d": gettext_lazy("30 days"),
    "1y": gettext_lazy("1 year"),
}
COMPARED: Mapping[str, timedelta] = {"day": timedelta(days=1), "week": timedelta(weeks=1)}
COMPARED_LABELS: Mapping[str, str | Promise] = {
    "": pgettext_lazy("to compare with", "no comparison"),
    "day": gettext_lazy("a day earlier"),
    "week": gettext_lazy("a week earlier"),
}
# Of the list below: another period begins it again.
BEFORE = "before"
LONGEST, SHORTEST = timedelta(days=366), timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Choice:
    label: str | Promise
    query: str
    here: bool


@dataclass(frozen=True, slots=True)
class TimeRange:
    """`key`: of RANGES, or OWN. `compared`: by how much the other period is earlier. `problem`: what is wrong
    with what was asked for; then it is the default one. `asked`: the address."""

    key: str
    start: datetime
    end: datetime
    asked: QueryDict
    compared: timedelta | None = None
    problem: str = ""

    @property
    def choices(self) -> list[Choice]:
        """Links to the other ranges; what else the address holds is kept."""
        return [Choice(label, self._query(key), key == self.key) for key, label in LABELS.items()]

    @property
    def compare(self) -> str:
        return next((key for key, shift in COMPARED.items() if shift == self.compared), "")

    @property
    def compared_label(self) -> str:
        return str(COMPARED_LABELS[self.compare])

    @property
    def comparisons(self) -> list[tuple[str, str | Promise, bool]]:
        return [(key, label, key == self.compare) for key, label in COMPARED_LABELS.items()]

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What else the address holds, as hidden fields of the form."""
        own = (RANGE, FROM, UNTIL, COMPARE, BEFORE)
        return [(name, value) for name, values in self.asked.lists() if name not in own for value in values]

    @property
    def asked_for(self) -> list[tuple[str, str]]:
        """The period as hidden fields of another form of the page."""
        own = (RANGE, FROM, UNTIL, COMPARE)
        return [(name, value) for name in own if (value := self.asked.get(name))]

    @property
    def typed(self) -> tuple[str, str]:
        """Both ends as fields of a form take them: as typed, else the period in the zone of the site."""
        ends = (
            self.asked.get(name) or timezone.localtime(at).strftime("%Y-%m-%dT%H:%M")
            for name, at in ((FROM, self.start), (UNTIL, self.end))
        )
        first, last = ends
        return first, last

    def _query(self, key: str) -> str:
        query = self.asked.copy()
        for name in (FROM, UNTIL, BEFORE):
            query.pop(name, None)
        query[RANGE] = key
        return query.urlencode()


def time_range(asked: QueryDict, now: datetime, default: str = DEFAULT) -> TimeRange:
    """Returns the period that an address asks for; the default one with what is wrong where it cannot be."""
    compare = asked.get(COMPARE, "")
    compared = COMPARED.get(compare)
    usual = TimeRange(default, now - RANGES[default], now, asked, compared)
    try:
        if compare and compared is None:
            raise ValidationError(_("Unknown comparison: use “day” or “week”."))
        key = asked.get(RANGE, "")
        if asked.get(FROM) or asked.get(UNTIL) or key == OWN:
            start, end = _own(asked, now)
            return TimeRange(OWN, start, end, asked, compared)
        if key and key not in RANGES:
            raise ValidationError(_("Unknown period: choose one from the list."))
        return TimeRange(key or default, now - RANGES[key or default], now, asked, compared)
    except ValidationError as error:
        return TimeRange(usual.key, usual.start, usual.end, asked, compared, " ".join(error.messages))


def _own(asked: QueryDict, now: datetime) -> tuple[datetime, datetime]:
    field = InstantField(required=False)
    start, end = field.clean(asked.get(FROM, "")), field.clean(asked.get(UNTIL, "")) or now
    if start is None:
        raise ValidationError(_("Enter the start of the period."))
    end = min(end, now)
    if start >= now:
        raise ValidationError(_("The start of the period must be in the past."))
    if end - start < SHORTEST:
        raise ValidationError(_("The period must end at least a minute after it starts."))
    if end - start > LONGEST:
        raise ValidationError(_("The period cannot be longer than a year."))
    return start, end
