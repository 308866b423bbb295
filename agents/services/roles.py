"""The two groups that every installation has: operators act, viewers look."""

from django.contrib.auth.models import Group, Permission
from django.db.models import Q, QuerySet

from console.audit.saves import saving

# Apps whose rows people may see. Tokens are nobody's to look at but an administrator's.
SEEN_APPS = ("console", "agents", "failures", "dlq")
SECRET_MODELS = ("servertoken", "apitoken")
CHANGED_BY_OPERATORS = (
    "launchsetting",
    "destination",
    "pool",
    "replayjob",
    "schedule",
    "scheduledgroup",
    "groupmember",
    "noticetarget",
    "alertrule",
)
# Nothing is lost with these. Settings, servers, pools and destinations are an administrator's to remove.
REMOVED_BY_OPERATORS = ("schedule", "scheduledgroup", "groupmember", "noticetarget", "alertrule")
CUSTOM_PREFIX = "can_"
GIVEN_TO_OPERATORS = ("give_back", "handle_waiting")
# What settings mask, and what throws messages away, is for those whom an administrator names.
NAMED_BY_ADMINISTRATORS = ("can_see_masked", "can_discard")


def make_groups() -> None:
    """Creates `operator` and `viewer` or brings their permissions up to date; people in them stay."""
    permissions = Permission.objects.filter(content_type__app_label__in=SEEN_APPS)
    permissions = permissions.exclude(content_type__model__in=SECRET_MODELS)
    permissions = permissions.exclude(codename__in=NAMED_BY_ADMINISTRATORS)
    looks = Q(codename__startswith="view_")
    acts = Q(codename__startswith=CUSTOM_PREFIX) | Q(codename__in=GIVEN_TO_OPERATORS)
    for model in CHANGED_BY_OPERATORS:
        acts |= Q(codename__in=[f"add_{model}", f"change_{model}"])
    acts |= Q(codename__in=[f"delete_{model}" for model in REMOVED_BY_OPERATORS])
    _group("viewer", permissions.filter(looks))
    _group("operator", permissions.filter(looks | acts))


def _group(name: str, permissions: QuerySet[Permission]) -> None:
    group = Group.objects.filter(name=name).first() or Group(name=name)
    with saving(group, None):
        group.save()
        group.permissions.set(permissions)
