"""What rows keep of a problem becomes a code with parameters; this step writes it into the column of text. A
sentence that is not known, as of a broker, stays as it is, as `legacy.text`. Killed anywhere, the step has not
happened.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from django.db import migrations

MODELS = ("ReplayJob", "WholeFetch", "LetterQueue")
CHUNK = 500  # rows; SQLite takes 999 values in a statement
SENTENCES = (
    (r"the setting tripped", "replay.tripped"),
    (r"the setting was disabled", "replay.disabled"),
    (r"too many letters of a step failed again", "replay.failing"),
    (r"the breaker counts of the setting moved up", "replay.breaker_counts"),
    (r"nothing was heard of too many messages of a step", "replay.unknown"),
    (r"(?P<n>\d+) letters stayed where they were", "replay.stayed"),
    (r"(?P<n>\d+) messages of (?P<queue>\S+) are in delivery to another consumer", "replay.held"),
    (r"refused by (?P<person>.+)", "replay.refused_by"),
    (r"(?P<type>\w+); the log of the worker has the rest", "job.worker_failed"),
    (r"It is not in the queue any more\.", "full_body.not_there"),
    (r"It was not found within four minutes: it lies too deep in its queue\.", "full_body.too_deep"),
    (r"It is larger than 100 MB: only the broker keeps that\.", "full_body.too_large"),
    (r"Another broker has it, which is not reached now\.", "full_body.other_broker"),
    (r"Three tries were broken off\.", "full_body.tried"),
    (r"the counts differ though the queue was walked whole", "queue.still_differs"),
    (r"the broker has no such queue", "queue.missing"),
)
_PATTERNS = tuple((re.compile(pattern, re.DOTALL), code) for pattern, code in SENTENCES)


def coded(text: str) -> dict[str, Any]:
    """What a row keeps from now on, of what it kept."""
    if not text:
        return {}
    for pattern, code in _PATTERNS:
        if match := pattern.fullmatch(text):
            found = match.groupdict()
            return {
                "code": code,
                "params": {name: int(value) if name == "n" else value for name, value in found.items()},
            }
    return {"code": "legacy.text", "params": {"text": text}}


def write_codes(apps: Any, schema_editor: Any) -> None:
    _rewrite(apps, lambda text: json.dumps(coded(text), ensure_ascii=False))


def write_sentences(apps: Any, schema_editor: Any) -> None:
    """The way back knows no sentence but its own."""
    _rewrite(apps, lambda text: str(json.loads(text).get("params", {}).get("text", "")) if text else "")


def _rewrite(apps: Any, change: Callable[[str], str]) -> None:
    """Rows of a chunk with the same text are one statement."""
    for model in MODELS:
        rows = apps.get_model("dlq", model).objects.order_by("pk")
        chunk = list(rows.values_list("pk", "problem")[:CHUNK])
        while chunk:
            alike = defaultdict(list)
            for pk, text in chunk:
                alike[text].append(pk)
            for text, pks in alike.items():
                rows.filter(pk__in=pks).update(problem=change(text))
            chunk = list(rows.filter(pk__gt=chunk[-1][0]).values_list("pk", "problem")[:CHUNK])


class Migration(migrations.Migration):
    dependencies = [("dlq", "0021_walks_of_replays")]
    operations = [migrations.RunPython(write_codes, write_sentences)]
