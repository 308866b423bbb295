"""/api/v1/grants/: what groups of people may do with the settings of one pool."""

from collections.abc import Sequence

from django.contrib.auth.models import Group
from django.utils.translation import gettext as _
from rest_framework import serializers, viewsets
from rest_framework.request import Request

from agents.models import Destination, LaunchSetting, Pool, PoolGrant, ScheduledGroup
from agents.pools.rights import may_create_in, may_in_pool, may_subscribe, missing, why_not, why_not_group
from console.audit.forms import RecordedRows
from console.rest.errors import Forbidden
from console.rest.serializers import CheckedModelSerializer


class GrantSerializer(CheckedModelSerializer[PoolGrant]):
    pool = serializers.SlugRelatedField(slug_field="name", queryset=Pool.objects.all())
    group = serializers.SlugRelatedField(
        slug_field="name", queryset=Group.objects.all(), help_text="A group of people, not of settings."
    )

    class Meta:
        model = PoolGrant
        fields = (
            "id", "pool", "group", "may_edit", "may_enable", "may_disable", "may_run", "may_stop",
            "may_answer", "may_see_letters", "may_see_masked", "may_give_back", "may_edit_letters",
            "may_redirect", "may_redirect_elsewhere",
            "may_discard", "may_handle_waiting", "may_import_letters",
        )  # fmt: skip


class GrantViewSet(RecordedRows, viewsets.ModelViewSet[PoolGrant]):
    """An administrator's: whoever may write here can give every right away."""

    queryset = PoolGrant.objects.select_related("pool", "group").order_by("pool__name", "group__name")
    serializer_class = GrantSerializer
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]


# -- 403 with the right that is missing ----------------------------------------------------------------------


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
            "You cannot use the destination “%(name)s”: no setting in the pools that you may edit "
            "subscribes to it. Ask for the permission “%(permission)s”."
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
    return Forbidden(reason, where=where, what_to_do=_("Ask an administrator for this permission."))
