"""One entry of a file to its row, and who may save it. Answers what changed; raises ValidationError, and
then stored nothing.

`begin` is called before a row is saved, with the row as it is stored: what it answers leaves the entry of
the audit.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.manifests.document import Entry
from agents.manifests.export import Change, between, plain_values, servers_of
from agents.models import Destination, LaunchSetting, Pool, ScheduledGroup, Server
from agents.pools.rights import may_create_in, may_subscribe, missing, why_not, why_not_group
from agents.provisioning.topology import REMOVING, save_destination, save_setting
from agents.settings.enable import check_discarding, check_unmasking
from agents.settings.pools import check_allowing, save_pool
from console.audit.saves import Saving
from console.operations.operation import ModelPermission

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
        raise ValidationError("The setting is being removed: apply the file again after the removal.")
    if stored is not None:
        destination = stored.destination.name if stored.destination else None
        old = {**plain_values(stored), "pool": stored.pool.name, "destination": destination}
    elif "pool" not in entry.given:
        raise ValidationError({"pool": "A pool is required."})
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


# -- who may save what a file says ---------------------------------------------------------------------------
# The rights that the forms and routes of each row ask for. Of a file that the command line applies nothing
# is asked.


ADD_POOL = ModelPermission("agents.add_pool", gettext_lazy("Can add pool"))
CHANGE_POOL = ModelPermission("agents.change_pool", gettext_lazy("Can change pool"))
ADD_DESTINATION = ModelPermission("agents.add_destination", gettext_lazy("Can add destination"))
CHANGE_DESTINATION = ModelPermission("agents.change_destination", gettext_lazy("Can change destination"))


def why_not_saved(by: Any, entry: Entry, stored: Any) -> str:
    """Returns which right is missing to save the entry over `stored` (None: it is new), before it is saved;
    empty where this person may."""
    if entry.section == "settings":
        # As it is in the database: what is given may be filled by now.
        return _setting(by, entry, stored and LaunchSetting.objects.get(pk=stored.pk))
    if entry.section == "groups":
        members = _members(entry)
        now = why_not_group(by, "edit", stored) if stored is not None else ""
        return now or (why_not_group(by, "edit", ScheduledGroup(), members) if members or not stored else "")
    needed = {
        ("pools", True): ADD_POOL,
        ("pools", False): CHANGE_POOL,
        ("destinations", True): ADD_DESTINATION,
        ("destinations", False): CHANGE_DESTINATION,
    }[entry.section, stored is None]
    return needed.why_not(by, stored)


def why_not_switched(by: Any, action: str, owner: LaunchSetting | ScheduledGroup) -> str:
    """`action`: enable or disable."""
    if isinstance(owner, ScheduledGroup):
        return why_not_group(by, action, owner)
    return why_not(by, action, owner)


def _setting(by: Any, entry: Entry, stored: LaunchSetting | None) -> str:
    pool = Pool.objects.filter(name=entry.given.get("pool")).first()
    destination = Destination.objects.filter(name=entry.given.get("destination")).first()
    if stored is not None and (why := why_not(by, "edit", stored)):
        return why
    moved = pool is not None and (stored is None or stored.pool_id != pool.pk)
    if moved and pool is not None and not may_create_in(by, pool):
        return missing("add", pool.name)
    subscribes = destination is not None and (stored is None or stored.destination_id != destination.pk)
    action = "add" if stored is None else "edit"
    if subscribes and destination is not None and not may_subscribe(by, action, destination):
        text = _(
            "You cannot use the destination “%(name)s”: no setting in the pools that you can edit "
            "is subscribed to it. Ask for the permission “%(permission)s”."
        )
        return text % {"name": destination.name, "permission": _("Can add destination")}
    return ""


def _members(entry: Entry) -> Sequence[LaunchSetting]:
    """Those that the file names and that are there by now; of others their own entries say what is wrong."""
    return list(LaunchSetting.objects.filter(key__in=entry.given.get("members", [])))
