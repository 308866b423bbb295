"""Codes of the audit that this app gives to entries, their words, and the rows that people save."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from agents.models import (
    Destination,
    LaunchSetting,
    MaintenanceWindow,
    Pool,
    PoolGrant,
    Schedule,
    ScheduledGroup,
    Server,
)
from agents.models.schedule import Missed
from console.audit import text
from console.audit.saves import RowKind

text.ACTIONS.declare({"manifest.apply": _("apply settings from a file")})
text.COUNTS.declare(
    {
        "agents listed": _("agents listed"),
        "settings withheld": _("settings no longer sent to their servers"),
    }
)
text.DETAILS.declare(
    {
        "add": _("labels to add"),
        "added": _("added"),
        "allows": _("allowed agents"),
        "group": _("group"),
        "member": _("member"),
        "members": _("members"),
        "message": _("message"),
        "missed": _("missed runs"),
        "remove": _("labels to remove"),
        "removed": _("removed"),
        "schedule": _("schedule"),
        "ticket": _("ticket"),
        "try_one_first": _("Try one message first"),
    }
)
text.VALUES.declare(
    {"allows": {"every": _("all agents on the pool's servers"), "listed": _("only the listed agents")}}
)


def _scheduled(owner: LaunchSetting | ScheduledGroup) -> dict[str, Any]:
    of = {"group" if isinstance(owner, ScheduledGroup) else "setting": owner}
    schedule = Schedule.objects.filter(**of).first()
    return {"schedule": str(schedule), "missed": schedule.missed} if schedule else {}


def _allowed(agents: Any) -> text.Text:
    return _("all agents on the pool's servers") if agents is None else agents or _("no agent")


SCHEDULE_WORDS = {"missed": lambda value: dict(Missed.choices).get(str(value), "—")}
RowKind("destination", Destination, _("Destinations"), about=("name",))
RowKind("grant", PoolGrant, _("Pool permissions"), page="agents_poolgrant_change", about=("pool", "group"))
RowKind("group", ScheduledGroup, _("Groups"), key="name", removed_by="group.delete",
        many={"members": ("setting__key",)}, more=_scheduled, words=SCHEDULE_WORDS)  # fmt: skip
RowKind("maintenance", MaintenanceWindow, _("Maintenance windows"),
        page="agents_maintenancewindow_change", about=("pool", "crontab", "time_zone"))  # fmt: skip
RowKind("pool", Pool, _("Pools"), key="name", many={"servers": ("name",)}, words={"allowed_agents": _allowed})
RowKind("server", Server, _("Servers"), key="name", removed_by="server.remove")
RowKind("setting", LaunchSetting, _("Settings"), key="key", removed_by="setting.remove", more=_scheduled,
        setting_key=lambda setting: setting.key, words=SCHEDULE_WORDS)  # fmt: skip
