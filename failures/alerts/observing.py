"""Kinds of failures that people must know of, from counts that the intake keeps: no protocol is read."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Sum

from agents.alerts.kinds import Observation
from failures.alerts.affected import Settings, counts_of, most_first, observation, settings_of
from failures.error_groups.merges import heads_of
from failures.error_groups.returns import settings_of_returns
from failures.models import Fingerprint, FingerprintHour, KnownError

# So long a kind is new, and so long it must be quiet to be gone.
NEW = timedelta(hours=24)
QUIET = timedelta(hours=24)
# In the first hours of a setting or of the installation every kind is new: those are one alert per setting.
YOUNG = timedelta(hours=6)
# What an hour is compared with at least.
LEAST = 20
MOST = 500
HOUR = timedelta(hours=1)
OF_SETTING = "setting:"


def new(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """`value`: how often it came so far; of a young setting how many kinds. Not what is in the book, nor what
    people said to be the same as another one."""
    rows = Fingerprint.objects.filter(received_at__gt=now - NEW, merged_into=None, part_of=None, known=None)
    found = list(rows.order_by("-received_at", "-fingerprint")[:MOST])
    if not found:
        return
    counts = counts_of([row.pk for row in found])
    settings = settings_of({key for each in counts.values() for key in each})
    grown_up = _first_receipt() + YOUNG
    young: Counter[str] = Counter()
    for row in sorted(found, key=lambda row: -row.count):
        key = _young_setting(row, counts[row.pk], settings, grown_up)
        if key:
            young[key] += 1
        else:
            yield observation(row, float(row.count), counts[row.pk], settings)
    for key, count in young.items():
        of = settings[key]
        facts = {"setting": key}
        yield Observation(
            OF_SETTING + key, float(count), setting=of.pk, pools=frozenset([of.pool]), facts=facts
        )


def returned(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Came after a person said that it is fixed, from an agent that should have the fix, and lately."""
    entries = KnownError.objects.filter(fingerprint__merged_into=None, returned_at__gte=now - QUIET)
    found = list(entries.select_related("fingerprint").order_by("-returned_at")[:MOST])
    if not found:
        return
    counts = counts_of([entry.pk for entry in found], now - QUIET)
    with_fix = settings_of_returns(found, now - QUIET)
    settings = settings_of({key for each in counts.values() for key in each})
    for entry in found:
        facts = {"fixed_in": entry.fixed_in, "ticket": entry.ticket}
        where = {key: count for key, count in counts[entry.pk].items() if key in with_fix.get(entry.pk, ())}
        yield observation(entry.fingerprint, 1.0, where or counts[entry.pk], settings, **facts)


@dataclass(slots=True)
class _Pace:
    """Failures by setting in the last hour; and how many in the hour before."""

    last: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    before: float = 0.0

    @property
    def count(self) -> float:
        return sum(self.last.values())


def growing(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """The last hour against the hour before; of a kind that has been known for longer than that: the others
    are new."""
    paces = _paces(now)
    rows = Fingerprint.objects.filter(pk__in=paces, received_at__lte=now - 2 * HOUR)
    settings = settings_of({key for pace in paces.values() for key in pace.last})
    found = []
    for row in rows:
        pace = paces[row.pk]
        facts = {"count": round(pace.count), "before": round(pace.before)}
        value = round(pace.count / max(pace.before, LEAST), 2)
        found.append(observation(row, value, pace.last, settings, **facts))
    yield from sorted(found, key=lambda seen: -(seen.value or 0.0))


def _paces(now: datetime) -> Mapping[str, _Pace]:
    """Of the kinds that came most in the last two hours of the clock. Counts are kept by hours of the clock:
    of one that the window cuts as much is counted as of it lies in the window."""
    this = now.replace(minute=0, second=0, microsecond=0)
    passed = (now - this) / HOUR
    hours = FingerprintHour.objects.order_by()
    busy = (
        hours.filter(hour__gte=this - HOUR)
        .values("fingerprint")
        .annotate(n=Sum("count"))
        .order_by("-n")[:MOST]
    )
    wanted = [row["fingerprint"] for row in busy]
    heads = heads_of(wanted)
    weights = {this: (1.0, 0.0), this - HOUR: (1 - passed, passed), this - 2 * HOUR: (0.0, 1 - passed)}
    paces: dict[str, _Pace] = defaultdict(_Pace)
    rows = hours.filter(fingerprint__in=wanted, hour__gte=this - 2 * HOUR, hour__lte=this)
    for fingerprint, key, hour, count in rows.values_list("fingerprint", "setting_key", "hour", "count"):
        now_part, before_part = weights.get(hour, (0.0, 0.0))
        pace = paces[heads[fingerprint]]
        pace.last[key] += count * now_part
        pace.before += count * before_part
    return paces


def _first_receipt() -> datetime:
    """When the first failure of all came."""
    return Fingerprint.objects.order_by("received_at").values_list("received_at", flat=True)[0]


def _young_setting(
    row: Fingerprint, counts: Mapping[str, float], settings: Settings, grown_up: datetime
) -> str:
    """The setting in whose first hours, or in those of the installation, it was seen first; empty: none."""
    key = next((each for each in most_first(counts) if each in settings), "")
    return key if key and row.received_at < max(grown_up, settings[key].created_at + YOUNG) else ""
