"""403 with the right that is missing."""

from django.utils.translation import gettext as _
from rest_framework.request import Request

from agents.api.errors import Forbidden
from agents.models import LaunchSetting, Pool, ScheduledGroup
from agents.services.rights import may_create_in, missing, why_not, why_not_group


def check_right(request: Request, action: str, setting: LaunchSetting) -> None:
    """Raises Forbidden."""
    if reason := why_not(request.user, action, setting):
        raise _forbidden(reason, f"settings/{setting.key}")


def check_pool(request: Request, pool: Pool) -> None:
    """For a setting that is made in this pool or moved into it."""
    if not may_create_in(request.user, pool):
        raise _forbidden(missing("add", pool.name), "pool")


def check_group(request: Request, action: str, group: ScheduledGroup) -> None:
    if reason := why_not_group(request.user, action, group):
        raise _forbidden(reason, f"groups/{group.name}")


def _forbidden(reason: str, where: str) -> Forbidden:
    return Forbidden(reason, where=where, what_to_do=_("Ask an administrator for the permission."))
