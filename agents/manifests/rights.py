"""Who may save what a file says: the rights that the forms and routes of each row ask for. Of a file that the
command line applies nothing is asked."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.manifests.document import Entry
from agents.models import Destination, LaunchSetting, Pool, ScheduledGroup
from agents.pools.rights import may_create_in, may_subscribe, missing, why_not, why_not_group
from console.operations.operation import ModelPermission

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
            "You cannot use the destination “%(name)s”: no setting in the pools that you may edit "
            "subscribes to it. Ask for the permission “%(permission)s”."
        )
        return text % {"name": destination.name, "permission": _("Can add destination")}
    return ""


def _members(entry: Entry) -> Sequence[LaunchSetting]:
    """Those that the file names and that are there by now; of others their own entries say what is wrong."""
    return list(LaunchSetting.objects.filter(key__in=entry.given.get("members", [])))
