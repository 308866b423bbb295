"""What the broker said to an action on waiting messages becomes a reason, and what an open job says of a try
that is over is forgotten: from now on `wait_reason` says which problem the next try forgets. Killed anywhere,
the step has not happened.
"""

import json
from typing import Any

from django.db import migrations
from django.db.models import F, Value
from django.db.models.functions import Concat

from console.reasons import NO_REASON

OPEN = {
    "ReplayJob": ("planned", "running", "paused"),
    "WholeFetch": ("asked", "running"),
}


def write_reasons(apps: Any, schema_editor: Any) -> None:
    actions = apps.get_model("dlq", "WaitingAction").objects
    for action in actions.exclude(problem="").only("pk", "problem", "state", "counts").iterator():
        is_over = action.state not in ("planned", "running") or "refused" in action.counts
        reason = {"code": "legacy.text", "params": {"text": action.problem}} if is_over else {}
        actions.filter(pk=action.pk).update(problem=json.dumps(reason, ensure_ascii=False))
    actions.filter(problem="").update(problem="{}")
    for name, states in OPEN.items():
        apps.get_model("dlq", name).objects.filter(state__in=states).update(problem=NO_REASON)


def write_texts(apps: Any, schema_editor: Any) -> None:
    actions = apps.get_model("dlq", "WaitingAction").objects
    for action in actions.only("pk", "problem").iterator():
        text = str(json.loads(action.problem or "{}").get("params", {}).get("text", ""))
        actions.filter(pk=action.pk).update(problem=text)


def name_queues(apps: Any, schema_editor: Any) -> None:
    """Of jobs that were asked for before there were other actions than giving back."""
    jobs = apps.get_model("dlq", "ReplayJob").objects.filter(source_queue="")
    jobs.update(source_queue=Concat(Value("DLQ."), F("setting_key")), target_queue=F("setting_key"))


class Migration(migrations.Migration):
    dependencies = [("dlq", "0025_saved_filters_to_console")]
    operations = [
        migrations.RunPython(write_reasons, write_texts),
        migrations.RunPython(name_queues, migrations.RunPython.noop),
    ]
