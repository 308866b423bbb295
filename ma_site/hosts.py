"""Hosts that run workers of this site: whether they were told the same, and run the same version."""

import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from agents.models import ComponentCondition, ComponentState
from agents.site.components import note_state
from console.jobs import detached
from contract import __version__
from ma_site.env import Environment

PREFIX = "host:"
SECRET = "MA_SECRET_KEY"
EVERY, SEEN = timedelta(minutes=1), timedelta(minutes=10)
# What a host may have for itself: where things are for it, its files, what it is asked by.
OWN = frozenset(
    {
        "allowed_hosts", "amqp_url", "broker_password", "broker_tls", "broker_user", "data", "database",
        "debug", "log_level", "monitoring", "pipeline_drivers", "pipeline_master", "pipeline_memory_mb",
        "pipeline_properties", "pipeline_submit", "redis_url", "schema_signed_in", "stomp_address",
        "trusted_proxies", "unencrypted",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """Of another host from this one. `variables` are named, their values never."""

    host: str
    version: str
    variables: tuple[str, ...]


def note_host(now: datetime) -> None:
    """Writes down what this host was told, as digests."""
    details = {"version": __version__, "digests": digests(settings.ENVIRONMENT)}
    note_state(_row_of(detached.host()), ComponentCondition.OK, now, details)


def digests(told: Environment) -> dict[str, str]:
    """With the key of the site: whoever reads the rows cannot try values. Another key makes all of them
    others."""
    key = told.secret_key.encode()
    names = sorted(set(Environment.__dataclass_fields__) - OWN)
    return {f"MA_{name.upper()}": _digest(key, repr(getattr(told, name))) for name in names}


def others(now: datetime) -> Iterator[Difference]:
    """Each other host whose worker was seen lately, with what differs."""
    mine = digests(settings.ENVIRONMENT)
    rows = ComponentState.objects.filter(name__startswith=PREFIX, measured_at__gt=now - SEEN)
    for row in rows.exclude(name=_row_of(detached.host())).order_by("name"):
        theirs = row.details.get("digests", {})
        differing = [name for name in mine if theirs.get(name) != mine[name]]
        if SECRET in differing:
            differing = [SECRET]
        yield Difference(row.name.removeprefix(PREFIX), str(row.details.get("version", "")), tuple(differing))


def _row_of(host: str) -> str:
    return f"{PREFIX}{host}"[:60]


def _digest(key: bytes, value: str) -> str:
    return hmac.digest(key, value.encode(), "sha256").hex()[:16]
