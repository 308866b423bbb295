"""Watches the broker and Redis, by what was measured of them, whose broker it is, when certificates end,
and how old the last backup is.

A worker measures every few seconds; with Redis it goes, too. Then whoever stands in for it measures here.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import ComponentCondition, ComponentState
from agents.site.backups import last_backup
from agents.site.broker_owner import OWNER
from agents.site.certificates import SOON, ends
from agents.site.components import measure
from alerts.kinds import AlertKind, Observation, Observe
from alerts.models import Severity
from alerts.rules import Thresholds
from console.ui.amounts import duration, number

# An older row tells of nobody who measures.
FRESH = timedelta(seconds=20)
# Its own sentence for each: a name that is put into a sentence begins it in small letters.
SILENT = {
    "broker": gettext_lazy("The broker has not responded for %(time)s."),
    "redis": gettext_lazy("Redis has not responded for %(time)s."),
}


def _away(name: str) -> Observe:
    def observe(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
        if not ComponentState.objects.filter(name=name, measured_at__gt=now - FRESH).exists():
            measure(now)
        row = ComponentState.objects.filter(name=name).first()
        if row is not None and row.state == ComponentCondition.DOWN:
            seconds = max(0.0, (now - row.since).total_seconds())
            yield Observation(name, seconds, facts={"component": name})

    return observe


def _says(facts: Mapping[str, Any], value: float) -> str:
    return str(SILENT[facts["component"]]) % {"time": duration(round(value))}


def _kind(name: str, component: str, label: Any, what_to_do: Any) -> AlertKind:
    return AlertKind(
        name=name,
        label=label,
        severity=Severity.BAD,
        limits=Thresholds(30.0, 30.0, open_after=timedelta(), close_after=timedelta(seconds=20)),
        unit=gettext_lazy("seconds without a response"),
        says=_says,
        measure=lambda value: duration(round(value)),
        what_to_do=what_to_do,
        url=lambda facts: reverse("admin:health"),
        observe=_away(component),
    )


BROKER = _kind(
    "broker_away",
    "broker",
    gettext_lazy("Broker unavailable"),
    gettext_lazy(
        "No messages are lost: they are on the broker's disk. Servers reconnect "
        "automatically. Start the broker. To find the cause, run ./ma status and ./ma logs "
        "artemis."
    ),
)
REDIS = _kind(
    "redis_away",
    "redis",
    gettext_lazy("Redis unavailable"),
    gettext_lazy(
        "Agents keep running. Replays, retention, schedules and provisioning are delayed; "
        "servers learn of changes only by polling (every 2 s). Start Redis. To find the "
        "cause, run ./ma status and ./ma logs redis."
    ),
)


def _adopted(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Whoever noticed it has stopped, so nobody may measure it again: the row holds until somebody does."""
    row = ComponentState.objects.filter(name=OWNER, state=ComponentCondition.DOWN).first()
    if row is not None:
        yield Observation("broker", 1.0, facts={"owner": row.details.get("owner", "")})


ADOPTED = AlertKind(
    name="broker_adopted",
    label=gettext_lazy("Broker taken over by another site"),
    severity=Severity.BAD,
    limits=Thresholds(1.0, 1.0, open_after=timedelta(), close_after=timedelta()),
    unit=gettext_lazy("1 while another site owns the broker"),
    says=lambda facts, value: (
        _(
            "The broker now belongs to another site (%(owner)s). This site no longer indexes dead "
            "letters or moves messages."
        )
        % {"owner": facts["owner"]}
    ),
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "If this is intended, stop this site: ./ma down. To take the broker back, run ./ma "
        "down, then ./ma up --adopt-broker."
    ),
    url=lambda facts: reverse("admin:health"),
    observe=_adopted,
)


def _ends_soon(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """`value`: days since the last 30 began, plus 1."""
    for what, end in sorted(ends().items(), key=lambda each: each[1]):
        left = (end - now) / timedelta(days=1)
        yield Observation(
            what, 1.0 + SOON.days - left, facts={"what": what, "end": end.isoformat(), "over": left <= 0}
        )


def _says_when(facts: Mapping[str, Any], value: float) -> str:
    text = (
        _("The certificate %(what)s expired on %(date)s.")
        if facts["over"]
        else _("The certificate %(what)s expires on %(date)s.")
    )
    return text % {"what": facts["what"], "date": date_format(datetime.fromisoformat(facts["end"]))}


CERTIFICATES = AlertKind(
    name="certificate_expires",
    label=gettext_lazy("Certificate expires"),
    severity=Severity.WARNING,
    limits=Thresholds(1.0, 1.0),
    unit=gettext_lazy("days since the last 30 days of a certificate began, plus 1"),
    says=_says_when,
    measure=lambda value: number(value - 1, 0) if value >= 1 else "",
    what_to_do=gettext_lazy(
        "Renew it before it expires: afterwards connections are refused. An installation started "
        "with ./ma up --tls renews its own with ./ma down, ./ma up. Restart the web process after "
        "renewing the certificate of the site."
    ),
    url=lambda facts: reverse("admin:health"),
    observe=_ends_soon,
)


def _without_backup(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """`value`: the age of the last good one, as a share of the allowed age."""
    last = last_backup()
    if last.allowed is None:
        return
    if last.made_at is None:
        yield Observation("backup", 1.0, facts={"made_at": ""})
    else:
        yield Observation(
            "backup", (now - last.made_at) / last.allowed, facts={"made_at": last.made_at.isoformat()}
        )


def _says_how_old(facts: Mapping[str, Any], value: float) -> str:
    if not facts["made_at"]:
        return _("No backup of this installation has been made yet.")
    made_at = localtime(datetime.fromisoformat(facts["made_at"]))
    return _("The last good backup was made on %(date)s.") % {"date": date_format(made_at, "DATETIME_FORMAT")}


BACKUP = AlertKind(
    name="backup_old",
    label=gettext_lazy("No recent backup"),
    severity=Severity.WARNING,
    limits=Thresholds(1.0, 1.0),
    unit=gettext_lazy("age of the last backup, as a share of MA_BACKUP_HOURS"),
    says=_says_how_old,
    measure=lambda value: f"{number(100 * value, 0)}%",
    what_to_do=gettext_lazy(
        "Make a backup: ./ma backup FOLDER. If one is made every night, see why the last ones failed."
    ),
    url=lambda facts: reverse("admin:health"),
    observe=_without_backup,
)


KINDS = (BROKER, REDIS, ADOPTED, CERTIFICATES, BACKUP)
