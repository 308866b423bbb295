"""What servers report of deliveries, runs and themselves becomes codes with parameters; this step writes it into
the columns of text, or beside them. A sentence that is not known stays as it is, as `legacy.text`. Killed
anywhere, the step has not happened.
"""

import json
import re
from collections import defaultdict
from typing import Any

from django.db import migrations

CHUNK = 500  # rows; SQLite takes 999 values in a statement
COMES_BACK = "the message comes back"
# Of deliveries: what was stored, and its code. A group of the pattern is a parameter.
SENTENCES = (
    (r"No answer came within (?P<seconds>[0-9.e+-]+) s\.", "delivery.no_answer"),
    (r"The delivery was answered ROLLBACK\.", "delivery.answered_rollback"),
    (r"Its handling failed\.", "delivery.handling_failed"),
    (r"It was given back: the run stops\.", "delivery.released"),
    (rf"The connection was lost while it waited; {COMES_BACK}\.", "delivery.connection_lost"),
    (
        r"The connection was lost while it was being committed: it is committed, or the message comes back\.",
        "delivery.in_doubt",
    ),
    (rf"The run ended while it waited; {COMES_BACK}\.", "delivery.run_ended"),
    (rf"The container ended while it waited; {COMES_BACK}\.", "delivery.container_ended"),
    (
        r"The container ended while it was being committed: it is committed, or the message comes back\.",
        "delivery.container_ended_in_doubt",
    ),
    (
        r"It is not open on this server: it was answered within its handling, or went with its connection\.",
        "delivery.not_open",
    ),
    (r"It could not be committed: (?P<detail>.*)", "delivery.not_committed"),
    (r"What its handling sent was not taken: (?P<detail>.*)", "delivery.sends_not_taken"),
    (r"Its server is not heard, and the message was delivered again\.", "delivery.delivered_again"),
    (r"agent on (?P<server>.+)", "delivery.agent_on"),
)
_PATTERNS = tuple((re.compile(pattern, re.DOTALL), code) for pattern, code in SENTENCES)


def coded(text: str, unknown: str = "legacy.text") -> dict[str, Any]:
    """What a row keeps from now on, of what it kept."""
    if not text:
        return {}
    for pattern, code in _PATTERNS:
        if match := pattern.fullmatch(text):
            return {"code": code, "params": match.groupdict()}
    return {"code": unknown, "params": {"text": text}}


def _rewrite(rows: Any, column: str, change: Any) -> None:
    """Rows of a chunk with the same text are one statement."""
    rows, last = rows.order_by("pk"), 0
    while chunk := list(rows.filter(pk__gt=last).values_list("pk", column)[:CHUNK]):
        alike = defaultdict(list)
        for pk, text in chunk:
            alike[text].append(pk)
        for text, pks in alike.items():
            rows.filter(pk__in=pks).update(**change(text))
        last = chunk[-1][0]


def _as_text(reason: dict[str, Any]) -> str:
    return json.dumps(reason, ensure_ascii=False)


def write_codes(apps: Any, schema_editor: Any) -> None:
    deliveries = apps.get_model("agents", "Acknowledgement").objects
    _rewrite(deliveries, "reason", lambda text: {"reason": _as_text(coded(text))})
    # A token's name is a person's own word.
    _rewrite(
        deliveries, "answered_from", lambda text: {"answered_from": _as_text(coded(text, unknown="said"))}
    )
    runs = apps.get_model("agents", "Run").objects
    _rewrite(runs.exclude(problem=""), "problem", lambda text: {"problems": [coded(text)]})
    for server in apps.get_model("agents", "Server").objects.all():
        server.problems = [coded(text) for text in server.problems if isinstance(text, str)]
        server.save(update_fields=["problems"])


def write_sentences(apps: Any, schema_editor: Any) -> None:
    """The way back knows no sentence but its own; servers say the rest with their next heartbeat."""
    deliveries = apps.get_model("agents", "Acknowledgement").objects
    for column in ("reason", "answered_from"):
        _rewrite(deliveries, column, lambda text, column=column: {column: _told(text)})
    apps.get_model("agents", "Server").objects.update(problems=[])


def _told(text: str) -> str:
    return str(json.loads(text).get("params", {}).get("text", "")) if text else ""


class Migration(migrations.Migration):
    dependencies = [("agents", "0036_columns_of_what_kmas_report")]
    operations = [migrations.RunPython(write_codes, write_sentences)]
