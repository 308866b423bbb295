"""Describes what is watched of failures: kinds that are new, that returned after their fix, that grow. From
counts that the intake keeps: no protocol is read. Type and place of an exception, never its text."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.models import LaunchSetting
from alerts.kinds import AlertKind, Observation, Text
from alerts.models import Severity
from alerts.rules import AlertStep, Thresholds
from console.ui.amounts import number
from console.ui.page import link
from failures.error_groups.merges import heads_of
from failures.error_groups.queries import fingerprint_url
from failures.error_groups.regressions import settings_of_returns
from failures.models import Fingerprint, FingerprintHour, KnownError

# Of one alert; the page of the fingerprint has them all.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """Holds what is needed of a setting that is there."""

    pk: int
    pool: int
    created_at: datetime


Settings = Mapping[str, KnownSetting]


def counts_of(fingerprints: Collection[str], since: datetime | None = None) -> dict[str, dict[str, float]]:
    """Returns by fingerprint how often it, and what is merged into it, came in which setting, in hours from
    `since` on; a part that was split off is of its setting. Three queries."""
    merged = Fingerprint.objects.filter(merged_into__in=fingerprints).values_list("pk", "merged_into")
    head_of = {pk: str(head) for pk, head in merged} | {each: each for each in fingerprints}
    rows = FingerprintHour.objects.filter(fingerprint__in=list(head_of))
    if since is not None:
        rows = rows.filter(hour__gte=since)
    found: dict[str, dict[str, float]] = {each: defaultdict(float) for each in fingerprints}
    for fingerprint, key, count in (
        rows.order_by().values_list("fingerprint", "setting_key").annotate(n=Sum("count"))
    ):
        found[head_of[fingerprint]][key] += count
    parts = Fingerprint.objects.filter(pk__in=fingerprints, part_of__isnull=False).values_list(
        "pk", "part_setting"
    )
    for part, key in parts:
        found[part][key] += 1.0
    return found


def most_first(counts: Mapping[str, float]) -> list[str]:
    return sorted(counts, key=lambda key: (-counts[key], key))


def existing_settings(keys: Collection[str]) -> Settings:
    """Those that are there; a failure may name one that is not. One query."""
    rows = LaunchSetting.objects.filter(key__in=keys).values_list("key", "pk", "pool_id", "created_at")
    return {key: KnownSetting(pk, pool, created_at) for key, pk, pool, created_at in rows}


def observation(
    row: Fingerprint, value: float, counts: Mapping[str, float], settings: Settings, **facts: Any
) -> Observation:
    """Observes one fingerprint. The pools of all its settings are notified, everybody where none is known.
    Notifications have type and place of what failed, never a text: that may quote a message."""
    keys = most_first(counts)
    known = [settings[key] for key in keys if key in settings]
    told = {
        "fingerprint": row.pk,
        "type": row.exception_type,
        "place": row.place,
        "settings": keys[:MOST_NAMED],
        "others": max(0, len(keys) - MOST_NAMED),
    }
    return Observation(
        row.pk,
        value,
        setting=known[0].pk if len(keys) == 1 and known else None,
        pools=frozenset(each.pool for each in known),
        facts={**told, **facts},
    )


# Kinds of failures that people must know of, from counts that the intake keeps: no protocol is read.


# So long a kind is new, and so long it must be quiet to be gone.
NEW_FOR = timedelta(hours=24)
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
    rows = Fingerprint.objects.filter(
        received_at__gt=now - NEW_FOR, merged_into=None, part_of=None, known=None
    )
    found = list(rows.order_by("-received_at", "-fingerprint")[:MOST])
    if not found:
        return
    counts = counts_of([row.pk for row in found])
    settings = existing_settings({key for each in counts.values() for key in each})
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
    settings = existing_settings({key for each in counts.values() for key in each})
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
    settings = existing_settings({key for pace in paces.values() for key in pace.last})
    found = []
    for row in rows:
        pace = paces[row.pk]
        facts = {"count": round(pace.count), "before": round(pace.before)}
        value = round(pace.count / max(pace.before, LEAST), 2)
        found.append(observation(row, value, pace.last, settings, **facts))
    yield from sorted(found, key=lambda seen: -(seen.value or 0.0))


def _paces(now: datetime) -> Mapping[str, _Pace]:
    """Returns the pace of the kinds that came most in the last two hours of the clock. Counts are kept by
    hours of the clock: of one that the window cuts as much is counted as of it lies in the window."""
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
    """Returns when the first failure of all came."""
    return Fingerprint.objects.order_by("received_at").values_list("received_at", flat=True)[0]


def _young_setting(
    row: Fingerprint, counts: Mapping[str, float], settings: Settings, grown_up: datetime
) -> str:
    """The setting in whose first hours, or in those of the installation, it was seen first; empty: none."""
    key = next((each for each in most_first(counts) if each in settings), "")
    return key if key and row.received_at < max(grown_up, settings[key].created_at + YOUNG) else ""


# -- the kinds of alerts about failures: bounds and words ----------------------------------------------------
# Type and place of an exception, never its text.


def _what(facts: Mapping[str, Any]) -> str:
    """Type and place."""
    return f"{facts['type']} · {facts['place']}" if facts["place"] else str(facts["type"])


def _where(facts: Mapping[str, Any]) -> str:
    """The settings, at most some of them."""
    names = ", ".join(facts["settings"]) or "—"
    return f"{names} +{number(facts['others'])}" if facts["others"] else names


def _new(facts: Mapping[str, Any], value: float) -> str:
    count = round(value)
    if "fingerprint" not in facts:
        text = ngettext(
            "%(n)s error group appeared in the first hours after %(key)s started.",
            "%(n)s error groups appeared in the first hours after %(key)s started.",
            count,
        )
        return text % {"n": number(count), "key": facts["setting"]}
    text = ngettext(
        "New error: %(what)s, %(n)s time in %(where)s.",
        "New error: %(what)s, %(n)s times in %(where)s.",
        count,
    )
    return text % {"what": _what(facts), "n": number(count), "where": _where(facts)}


def _new_head(facts: Mapping[str, Any], value: float) -> Text:
    one = "fingerprint" in facts or round(value) == 1
    return NEW.label if one else _("New error groups")


def _new_advice(facts: Mapping[str, Any]) -> Text:
    if "fingerprint" in facts:
        return NEW.what_to_do
    return _(
        "Check the failures on the setting page: new settings and agents often contain "
        "mistakes. The alert closes automatically a day after the last group appeared, or "
        "when all groups have notes."
    )


def _returned(facts: Mapping[str, Any], value: float) -> str:
    text = _("An error marked as fixed recurred: %(what)s in %(where)s.")
    told = text % {"what": _what(facts), "where": _where(facts)}
    return f"{told} ({facts['ticket']})" if facts["ticket"] else told


def _growing(facts: Mapping[str, Any], value: float) -> str:
    count = int(facts["count"])
    text = ngettext(
        "%(n)s failure in the last hour, %(before)s in the hour before: %(what)s in %(where)s.",
        "%(n)s failures in the last hour, %(before)s in the hour before: %(what)s in %(where)s.",
        count,
    )
    before = number(facts["before"])
    return text % {"n": number(count), "before": before, "what": _what(facts), "where": _where(facts)}


def _url(facts: Mapping[str, Any]) -> str:
    return (
        fingerprint_url(facts["fingerprint"]) if "fingerprint" in facts else link("setting", facts["setting"])
    )


NEW = AlertKind(
    name="fingerprint_new",
    label=gettext_lazy("New error group"),
    severity=Severity.WARNING,
    limits=Thresholds(1.0, 1.0, reminders=()),
    unit=gettext_lazy("failures so far"),
    says=_new,
    measure=number,
    what_to_do=gettext_lazy(
        "Check the failures of the group, then add a note with the cause and the recommended "
        "action. The alert closes automatically a day after the first failure, or when a note "
        "is added."
    ),
    url=_url,
    observe=new,
    notified_steps=frozenset({AlertStep.OPENED}),
    head=_new_head,
    advice=_new_advice,
)
RETURNED = AlertKind(
    name="fingerprint_returned",
    label=gettext_lazy("Error regressed"),
    severity=Severity.BAD,
    limits=Thresholds(1.0, 1.0),
    unit=gettext_lazy("1 while the error recurs"),
    says=_returned,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "The error occurred in an unknown agent version, in the version with the fix, or in a "
        "later one. If another version contains the fix, mark the error as fixed again and "
        "specify that version. If the fix does not work, reopen the error."
    ),
    url=_url,
    observe=returned,
)
GROWING = AlertKind(
    name="fingerprint_growing",
    label=gettext_lazy("Failures increasing"),
    severity=Severity.BAD,
    limits=Thresholds(3.0, 1.5, open_after=timedelta(seconds=60), close_after=timedelta(minutes=10)),
    unit=gettext_lazy(
        "ratio of failures in the last hour to those in the previous hour (if the previous "
        "count is below 20, 20 is used)"
    ),
    says=_growing,
    measure=lambda value: f"×{number(value, 1)}",
    what_to_do=gettext_lazy(
        "Open the error group. Find the affected settings and servers, and check them for "
        "recent changes. If the failures continue, the breaker disables the setting."
    ),
    url=_url,
    observe=growing,
)

KINDS = (NEW, RETURNED, GROWING)
