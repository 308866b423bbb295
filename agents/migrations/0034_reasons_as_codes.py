"""What rows keep of a reason becomes a code with parameters; this step writes it into the column of text.

A sentence that no version stored in this form stays as it is, as `legacy.text`. Killed anywhere, the step has
not happened.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from django.db import migrations

COLUMNS = (
    ("Activation", "reason"),
    ("GroupActivation", "reason"),
    ("LaunchSetting", "disabled_reason"),
    ("ScheduledGroup", "disabled_reason"),
    ("StateChange", "reason"),
    ("Window", "reason"),
)
CHUNK = 500  # rows; SQLite takes 999 values in a statement
TRIGGERS = "enabled|schedule|group|person"
POOL, AGENT = "“(?P<pool>[^”]*)”", "“(?P<agent>[^”]*)”"
# What was stored, and its code. A group of the pattern is a parameter; `why` is itself a reason.
SENTENCES = (
    (rf"The pool {POOL} has no server\.", "activation.no_server"),
    (rf"No server of the pool {POOL} is alive\.", "activation.none_alive"),
    (rf"No live server of the pool {POOL} offers the agent {AGENT}\.", "activation.none_offers"),
    (
        rf"Every live server of the pool {POOL} that offers the agent {AGENT} is cordoned or draining\.",
        "activation.all_cordoned",
    ),
    (
        rf"Every live server of the pool {POOL} is heard but does not take what it is sent\.",
        "activation.none_obeys",
    ),
    (r"The run before is still stopping\.", "activation.run_before_stops"),
    (r"It cannot be planned; the log of the site says why\.", "activation.not_planned"),
    (rf"(?P<trigger>{TRIGGERS})", "activation.started_by"),
    (r"the agent failed", "activation.agent_failed"),
    (r"a run failed", "activation.run_failed"),
    (r"(?P<n>\d+) messages failed and were not handled well later", "activation.messages_failed"),
    (r"late records", "activation.late_records"),
    (r"its pool does not allow its agent any more", "activation.not_allowed_any_more"),
    (r"epoch (?P<n>\d+)", "run.epoch"),
    (r"resumed, epoch (?P<n>\d+)", "run.resumed"),
    (r"the server is silent", "run.server_silent"),
    (r"the server (?:drains, )?left the pool,? or no longer offers the agent", "run.withdrawn"),
    (
        r"epoch (?P<n>\d+): (?P<same>\d+) × (?P<type>.*) in a row, (?P<any>\d+) failures in a row",
        "run.interrupted",
    ),
    (
        r"breaker: failures of one type in a row \((?P<type>.*)\) on (?P<servers>[^()]*)",
        "breaker.same_type",
    ),
    (r"breaker: failures in a row, last (?P<type>.*) on (?P<servers>\S+(?:, \S+)*)", "breaker.any_type"),
    (r"breaker: the message tried first failed \((?P<type>.*)\) on (?P<servers>[^()]*)", "breaker.trial"),
    (r"(?P<key>[a-z0-9-]+): (?P<why>breaker: .+)", "group.of_member"),
    (r"from the command line", "command_line"),
    (r"(?P<why>.+) \(from the command line\)", "command_line.because"),
    (r"applied from a file", "from_file"),
    (r"its time was over", "time_over"),
    (r"a later window was due at the same time", "window.later_one_started"),
    (r"missed: nobody could start it then", "window.missed"),
    (
        r"missed: (?P<count>\d+\+?) windows from (?P<first>.*) to (?P<last>.*), nobody could start them then",
        "window.missed_many",
    ),
    (r"started late, once for all missed windows", "window.started_late"),
    (r"(?P<key>\S+) did not finish well: (?P<state>[a-z]+)", "group.member_ended"),
    (r"(?P<key>\S+) is not there any more", "group.member_gone"),
    (r"(?P<key>\S+) could not be started: (?P<why>.+)", "group.member_refused"),
    (r"The setting is disabled\.", "start.disabled"),
    (r"It runs from enabling to disabling, as messages come\.", "start.runs_always"),
    (r"The activation before has not ended yet\.", "start.not_ended"),
    (
        r"It belongs to the group “(?P<name>[^”]*)”, which starts its members in order\.",
        "start.in_group",
    ),
    (rf"The pool {POOL} does not allow the agent {AGENT}\.", "start.agent_not_allowed"),
    (r"The group “(?P<name>[^”]*)” is disabled\.", "start.group_disabled"),
    (
        r"The activation of the group before still runs, with member (?P<step>\d+) of (?P<count>\d+)\.",
        "start.group_runs",
    ),
    (r"Its member “(?P<key>[^”]*)” still runs\.", "start.member_runs"),
)
ENDINGS = {
    "drained": "drained",
    "limit reached": "limit",
    "delayed messages did not come in time": "waited",
    "every run ended by itself": "finished",
    "stopped by a person": "stopped",
}
NUMBERS = ("n", "same", "any", "step")
_PATTERNS = tuple((re.compile(pattern, re.DOTALL), code) for pattern, code in SENTENCES)


def coded(text: str) -> dict[str, Any]:
    """What a row keeps from now on, of what it kept."""
    if not text:
        return {}
    if text in ENDINGS:
        return {"code": "activation.ended", "params": {"ending": ENDINGS[text]}}
    for pattern, code in _PATTERNS:
        if match := pattern.fullmatch(text):
            found = match.groupdict()
            return {"code": code, "params": {name: _param(name, value) for name, value in found.items()}}
    return {"code": "legacy.text", "params": {"text": text}}


def _param(name: str, value: str) -> Any:
    if name == "why":
        return coded(value)
    if name == "servers":
        return value.split(", ")
    return int(value) if name in NUMBERS else value


def write_codes(apps: Any, schema_editor: Any) -> None:
    _rewrite(apps, lambda text: json.dumps(coded(text), ensure_ascii=False))


def write_sentences(apps: Any, schema_editor: Any) -> None:
    """The way back knows no sentence but its own."""
    _rewrite(apps, lambda text: str(json.loads(text).get("params", {}).get("text", "")) if text else "")


def _rewrite(apps: Any, change: Callable[[str], str]) -> None:
    """Rows of a chunk with the same text are one statement."""
    for model, column in COLUMNS:
        rows = apps.get_model("agents", model).objects.order_by("pk")
        for chunk in _chunks(rows, column):
            alike = defaultdict(list)
            for pk, text in chunk:
                alike[text].append(pk)
            for text, pks in alike.items():
                rows.filter(pk__in=pks).update(**{column: change(text)})


def _chunks(rows: Any, column: str) -> Iterator[list[tuple[Any, str]]]:
    chunk = list(rows.values_list("pk", column)[:CHUNK])
    while chunk:
        yield chunk
        chunk = list(rows.filter(pk__gt=chunk[-1][0]).values_list("pk", column)[:CHUNK])


class Migration(migrations.Migration):
    dependencies = [("agents", "0033_celerys_own_beat")]
    operations = [migrations.RunPython(write_codes, write_sentences)]
