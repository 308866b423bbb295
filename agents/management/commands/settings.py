"""manage.py settings list|enable|disable|run|stop|stop_on|start_on|label: what people do on the pages, for
scripts and at night."""

from typing import Any

from agents.models import Activation, LaunchSetting
from agents.settings.operations import (
    DisableSetting,
    EnableSetting,
    LabelSetting,
    RunSetting,
    StartOnServer,
    StopOnServer,
    StopSetting,
)
from console.operations.command import OperationsCommand
from console.operations.operation import Done


class Command(OperationsCommand):
    help = (
        "Lists launch settings, or enables, disables, runs or labels one, or stops one everywhere or on one "
        "server. Exit code 1 if refused."
    )
    operations = (
        EnableSetting,
        DisableSetting,
        RunSetting,
        StopSetting,
        StopOnServer,
        StartOnServer,
        LabelSetting,
    )

    def as_json(self, setting: LaunchSetting) -> dict[str, Any]:
        return {
            "key": setting.key,
            "enabled": setting.enabled,
            "state_since": setting.state_since.isoformat(),
            "disabled_reason": str(setting.disabled_reason),
            "kind": setting.kind,
            "timing": setting.timing,
            "spread": setting.spread,
            "pool": setting.pool.name,
            "agent": setting.agent,
            "labels": setting.labels,
            "destination": setting.destination.name if setting.destination else None,
            "provision_state": setting.provision_state,
            "stopped_on": list(setting.server_stops.values_list("server__name", flat=True)),
        }

    def line(self, row: dict[str, Any]) -> str:
        state = "enabled " if row["enabled"] else "disabled"
        why = f"  {row['disabled_reason']}" if row["disabled_reason"] else ""
        kind = f"{row['timing']}-{row['spread']}"
        return f"{state}  {kind:<12}  {row['pool']}  {row['agent']}{why}"

    def made(self, done: Done) -> dict[str, Any]:
        return {"activation": str(done.made.pk) if isinstance(done.made, Activation) else None}
