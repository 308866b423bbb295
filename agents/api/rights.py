"""403 with the right that is missing."""

from collections.abc import Sequence

from django.utils.translation import gettext as _
from rest_framework.request import Request

from agents.models import Destination, LaunchSetting, Pool, ScheduledGroup
from agents.services.rights import may_create_in, may_in_pool, may_subscribe, missing, why_not, why_not_group
from console.rest.errors import Forbidden


def check_right(request: Request, action: str, setting: LaunchSetting) -> None:
    """Raises Forbidden."""
    if reason := why_not(request.user, action, setting):
        raise _forbidden(reason, f"settings/{setting.key}")


def check_pool(request: Request, pool: Pool) -> None:
    """For a setting that is made in this pool or moved into it."""
    if not may_create_in(request.user, pool):
        raise _forbidden(missing("add", pool.name), "pool")


def check_destination(request: Request, action: str, destination: Destination) -> None:
    """`action`: add or edit, for a setting that shall subscribe to it. Raises Forbidden."""
    if not may_subscribe(request.user, action, destination):
        text = _(
            "No setting of a pool where you may edit subscribes to “%(name)s”. Ask for “%(permission)s”."
        )
        facts = {"name": destination.name, "permission": _("Can add destination")}
        raise _forbidden(text % facts, "destination")


def check_edit_in(request: Request, pool: Pool) -> None:
    """For what belongs to all settings of a pool. Raises Forbidden."""
    if not may_in_pool(request.user, "edit", pool.pk):
        raise _forbidden(missing("edit", pool.name), "pool")


def check_group(
    request: Request, action: str, group: ScheduledGroup, members: Sequence[LaunchSetting] | None = None
) -> None:
    """`members`: those that it shall have; without them the present ones. Raises Forbidden."""
    if reason := why_not_group(request.user, action, group, members):
        raise _forbidden(reason, f"groups/{group.name}" if group.name else "members")


def _forbidden(reason: str, where: str) -> Forbidden:
    return Forbidden(reason, where=where, what_to_do=_("Ask an administrator for the permission."))
