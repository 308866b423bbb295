"""Enables, disables, stops or labels many settings at once: what would happen to each, then one after the
other.

Each is done as on its own page: by its own permission, in a transaction of its own, with an entry of its own
in the audit. One that is refused stops no other. The entries share an operation, by which what happened is
found again. Only the settings that are named are touched, so that nobody does more than a pre-flight has
shown. Killed in between, the first ones are done and the others are not; asked again, what is done already is
found so.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import structlog
from django.core.exceptions import ValidationError
from django.db import DatabaseError
from django.db.models import TextChoices
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.groups.group import group_of
from agents.models import LaunchSetting
from agents.models.labels import relabelled
from agents.settings.enable import in_group
from agents.settings.operations import (
    SETTINGS,
    DisableSetting,
    EnableSetting,
    LabelSetting,
    StopSetting,
)
from console.audit.log import part_of
from console.audit.models import AuditEntry, AuditResult
from console.operations.operation import Operation, perform
from console.operations.refusals import NotAllowed, Refused, WronglyAsked

log = structlog.get_logger(__name__)

# Settings in one operation; a house has hundreds.
MOST_AT_ONCE = 500
VERBS: Mapping[str, type[Operation[LaunchSetting]]] = {
    "enable": EnableSetting,
    "disable": DisableSetting,
    "stop": StopSetting,
    "label": LabelSetting,
}


# The rights for them, by their names in agents/pools/rights.py.
RIGHTS = {"enable": "enable", "disable": "disable", "stop": "stop", "label": "edit"}


class Fate(TextChoices):
    """What would happen to a setting, or what happened. GONE: it is removed; FAILED: a fault of the site."""

    DONE = "done", gettext_lazy("done")
    UNCHANGED = "unchanged", gettext_lazy("unchanged")
    REFUSED = "refused", gettext_lazy("refused")
    GONE = "gone", gettext_lazy("removed")
    FAILED = "failed", gettext_lazy("failed")


@dataclass(frozen=True, slots=True)
class BulkItem:
    """`says`: why it is refused, or what goes with it; for people."""

    key: str
    fate: str
    says: str = ""


def foresee(
    verb: str, settings: Iterable[LaunchSetting], by: Any, now: datetime, inputs: Mapping[str, Any]
) -> list[BulkItem]:
    """Returns what would happen to each now, as far as the rows tell. Raises Refused where the inputs can
    never be right."""
    operation = VERBS[verb]
    if operation is LabelSetting:
        try:
            relabelled({}, inputs["add"], inputs["remove"])
        except ValidationError as error:
            raise WronglyAsked("bad_labels", " ".join(error.messages)) from error
    return [_foreseen(operation, setting, by, now, inputs) for setting in settings]


def _foreseen(
    operation: type[Operation[LaunchSetting]],
    setting: LaunchSetting,
    by: Any,
    now: datetime,
    inputs: Mapping[str, Any],
) -> BulkItem:
    if by is not None and (why := operation.permission.why_not(by, setting)):
        return BulkItem(setting.key, Fate.REFUSED, str(why))
    if operation is EnableSetting and (group := group_of(setting)) is not None:
        return BulkItem(setting.key, Fate.REFUSED, in_group(group).sentence)
    try:
        if _is_so(operation, setting, inputs):
            return BulkItem(setting.key, Fate.UNCHANGED)
    except ValidationError as error:  # too many labels
        return BulkItem(setting.key, Fate.REFUSED, " ".join(error.messages))
    if refusal := operation().refusal_to(by, setting, now):
        fate = Fate.UNCHANGED if refusal.code == "nothing_runs" else Fate.REFUSED
        return BulkItem(setting.key, fate, refusal.sentence)
    return BulkItem(setting.key, Fate.DONE, _goes_along(operation, setting))


def _is_so(
    operation: type[Operation[LaunchSetting]], setting: LaunchSetting, inputs: Mapping[str, Any]
) -> bool:
    if operation is LabelSetting:
        labels: Any = setting.labels
        return bool(relabelled(labels, inputs["add"], inputs["remove"]) == labels)
    wanted = {EnableSetting: True, DisableSetting: False}.get(operation)
    return wanted is not None and setting.enabled is wanted


def _goes_along(operation: type[Operation[LaunchSetting]], setting: LaunchSetting) -> str:
    group = group_of(setting) if operation is DisableSetting else None
    return _("The group %(name)s will be disabled too.") % {"name": group.name} if group else ""


def carry_out(
    verb: str, keys: Collection[str], by: Any, inputs: Mapping[str, Any]
) -> tuple[UUID, list[BulkItem]]:
    """Returns the operation that its entries share, and what happened to each, in the order of `keys`.
    Outside of every transaction."""
    whole = uuid4()
    with part_of(whole):
        return whole, [_done(VERBS[verb], key, by, inputs) for key in dict.fromkeys(keys)]


def _done(
    operation: type[Operation[LaunchSetting]], key: str, by: Any, inputs: Mapping[str, Any]
) -> BulkItem:
    setting = SETTINGS.rows().filter(key=key).first()
    if setting is None:
        return BulkItem(key, Fate.GONE)
    try:
        done = perform(operation, setting, by, **inputs)
    except NotAllowed as denied:
        return BulkItem(key, Fate.REFUSED, denied.reason)
    except Refused as refused:
        fate = Fate.UNCHANGED if refused.code == "nothing_runs" else Fate.REFUSED
        return BulkItem(key, fate, refused.sentence)
    except LaunchSetting.DoesNotExist:
        return BulkItem(key, Fate.GONE)
    except DatabaseError as error:  # one that cannot be done must not keep the others from it
        log.exception("setting left out of a bulk operation", setting=key)
        return BulkItem(key, Fate.FAILED, str(error))
    return BulkItem(key, Fate.DONE if done.changed else Fate.UNCHANGED, str(done.message))


def happened(whole: UUID) -> list[BulkItem]:
    """Returns what the audit has of an operation, by the keys of its settings; empty where it knows none."""
    entries = AuditEntry.objects.filter(operation=whole, action__in=[each.code for each in VERBS.values()])
    found = {entry.setting_key: _of_entry(entry) for entry in entries.order_by("pk")}
    return [found[key] for key in sorted(found)]


def _of_entry(entry: AuditEntry) -> BulkItem:
    detail = entry.detail if isinstance(entry.detail, dict) else {}
    if entry.result == AuditResult.REFUSED:
        return BulkItem(entry.setting_key, Fate.REFUSED, str(detail.get("why", "")))
    fate = Fate.UNCHANGED if detail.get("changed") is False else Fate.DONE
    return BulkItem(entry.setting_key, fate)
