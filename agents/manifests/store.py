"""One entry of a file to its row. Answers what changed; raises ValidationError, and then stored nothing.

`begin` is called before a row is saved, with the row as it is stored: what it answers leaves the entry of the
audit."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError

from agents.manifests.document import Entry
from agents.manifests.export import Change, between, plain_values, servers_of
from agents.models import Destination, LaunchSetting, Pool, ScheduledGroup, Server
from agents.provisioning.topology import REMOVING, save_destination, save_setting
from agents.settings.enable import check_discarding, check_unmasking
from agents.settings.pools import check_allowing, save_pool
from console.audit.saves import Saving

Begin = Callable[[Any], Saving]
PlainRow = TypeVar("PlainRow", Pool, Destination, LaunchSetting, ScheduledGroup)


def store_pool(entry: Entry, by: Any, begin: Begin, *, now: datetime) -> list[Change]:
    stored = Pool.objects.filter(name=entry.name).first()
    pool = stored or Pool(name=entry.name)
    old = {**plain_values(pool), "servers": servers_of(pool)} if stored else None
    new = dict(entry.given)
    servers = _servers(new["servers"]) if "servers" in new else None
    if servers is not None:
        new["servers"] = [server.name for server in servers]
    changes = between(entry.path, old, new)
    if changes:
        if by is not None and "allowed_agents" in new:
            check_allowing(by, pool, new["allowed_agents"])
        save = begin(stored)
        save.counts = save_pool(_filled(pool, entry), by, now, servers).counts
    return changes


def store_destination(entry: Entry, _by: Any, begin: Begin) -> list[Change]:
    stored = Destination.objects.filter(name=entry.name).first()
    destination = stored or Destination(name=entry.name)
    changes = between(entry.path, plain_values(destination) if stored else None, entry.given)
    if changes:
        begin(stored)
        save_destination(_filled(destination, entry))
    return changes


def store_setting(entry: Entry, by: Any, begin: Begin) -> list[Change]:
    stored = LaunchSetting.objects.select_related("pool", "destination").filter(key=entry.name).first()
    setting = stored or LaunchSetting(key=entry.name)
    old = None
    if stored is not None and stored.wanted_hash == REMOVING:
        raise ValidationError("It is being removed: apply the file again when it is gone.")
    if stored is not None:
        destination = stored.destination.name if stored.destination else None
        old = {**plain_values(stored), "pool": stored.pool.name, "destination": destination}
    elif "pool" not in entry.given:
        raise ValidationError({"pool": "A pool is needed."})
    new = {name: value for name, value in entry.given.items() if name not in ("schedule", "enabled")}
    changes = between(entry.path, old, new)
    if changes:
        if by is not None and "after_last" in new:
            check_discarding(by, stored, new["after_last"])
        if by is not None and stored is not None and "masked_properties" in new:
            check_unmasking(by, stored, new["masked_properties"])
        _relate(setting, entry)
        begin(stored)
        save_setting(_filled(setting, entry), by)
    return changes


def store_group(entry: Entry, begin: Begin) -> list[Change]:
    """Its members and its schedule are stored by their services."""
    stored = ScheduledGroup.objects.filter(name=entry.name).first()
    group = stored or ScheduledGroup(name=entry.name)
    changes = between(entry.path, plain_values(group) if stored else None, entry.plain)
    if changes:
        begin(stored)
        _filled(group, entry).save()
    return changes


def _filled(row: PlainRow, entry: Entry) -> PlainRow:
    for name, value in entry.plain.items():
        setattr(row, name, value)
    row.full_clean()
    return row


def _relate(setting: LaunchSetting, entry: Entry) -> None:
    if "pool" in entry.given:
        pool = Pool.objects.filter(name=entry.given["pool"]).first()
        if pool is None:
            raise ValidationError({"pool": f"There is no pool {entry.given['pool']}."})
        setting.pool = pool
    if "destination" in entry.given:
        name = entry.given["destination"]
        setting.destination = Destination.objects.filter(name=name).first()
        if name is not None and setting.destination is None:
            raise ValidationError({"destination": f"There is no destination {name}."})


def _servers(names: Sequence[str]) -> list[Server]:
    """Returns them in the order in which an export has them."""
    found = list(Server.objects.filter(name__in=names).order_by("name"))
    if missing := sorted(set(names) - {server.name for server in found}):
        text = (
            f"There is no server {', '.join(missing)}: create it first with ./ma manage create_server NAME."
        )
        raise ValidationError({"servers": text})
    return found
