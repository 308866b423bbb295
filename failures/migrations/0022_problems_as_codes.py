"""What runs keep of a problem becomes a code with parameters; this step writes it into the column of text. A
sentence that is not known stays as it is, as `legacy.text`. Killed anywhere, the step has not happened.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from django.db import migrations

CHUNK = 500  # rows; SQLite takes 999 values in a statement
SENTENCES = {
    "PipelineRun": (
        (r"The Spark application ended with (?P<status>-?\d+): (?P<words>.+)", "application_ended"),
        (r"It took longer than (?P<hours>\d+) hours \(MA_PIPELINE_HOURS\) and was ended\.", "too_long"),
        (
            r"It needed more than (?P<mb>\d+) MB of memory \(MA_PIPELINE_MEMORY_MB\) and was ended\.",
            "too_large",
        ),
        (r"There is no spark-submit: install pyspark, or name one by MA_PIPELINE_SUBMIT\.", "no_submit"),
        (
            r"sslkey is PEM, .+ -outform DER -in (?P<key>.+) -out (?P<converted>.+)",
            "key_unreadable",
        ),
        (r"It was told to stop by a signal\.", "signalled"),
        (r"No process took it\.", "not_taken"),
        (r"Its process (?P<pid>\d+) on (?P<host>\S+) is gone\.", "process_gone"),
        (
            r"Its process (?P<pid>\d+) on (?P<host>\S+) has given no sign of life since (?P<since>.+)\.",
            "process_silent",
        ),
        # Stages begin with a small letter, types with a capital.
        (r"(?P<errors>[a-z]\w*: .+)", "stages_failed"),
        (r"(?P<type>[A-Z]\w*): (?P<text>.*)", "broke"),
    ),
    "RetentionRun": ((r"(?P<part>[^:]+): (?P<type>\w+): (?P<text>.*)", "part_failed"),),
}
PREFIXES = {"PipelineRun": "pipeline_run", "RetentionRun": "retention_run"}
NUMBERS = ("status", "hours", "mb", "pid")


def coded(model: str, text: str) -> dict[str, Any]:
    """What a row keeps from now on, of what it kept."""
    if not text:
        return {}
    for pattern, code in SENTENCES[model]:
        if match := re.fullmatch(pattern, text, re.DOTALL):
            found = match.groupdict().items()
            params = {name: int(value) if name in NUMBERS else value for name, value in found}
            return {"code": f"{PREFIXES[model]}.{code}", "params": params}
    return {"code": "legacy.text", "params": {"text": text}}


def write_codes(apps: Any, schema_editor: Any) -> None:
    for model in SENTENCES:
        _rewrite(apps, model, lambda text, model=model: json.dumps(coded(model, text), ensure_ascii=False))


def write_sentences(apps: Any, schema_editor: Any) -> None:
    """The way back knows no sentence but its own."""
    for model in SENTENCES:
        _rewrite(apps, model, lambda text: str(json.loads(text).get("params", {}).get("text", "")) if text else "")


def _rewrite(apps: Any, model: str, change: Callable[[str], str]) -> None:
    """Rows of a chunk with the same text are one statement."""
    rows = apps.get_model("failures", model).objects.order_by("pk")
    chunk = list(rows.values_list("pk", "problem")[:CHUNK])
    while chunk:
        alike = defaultdict(list)
        for pk, text in chunk:
            alike[text].append(pk)
        for text, pks in alike.items():
            rows.filter(pk__in=pks).update(problem=change(text))
        chunk = list(rows.filter(pk__gt=chunk[-1][0]).values_list("pk", "problem")[:CHUNK])


class Migration(migrations.Migration):
    dependencies = [("failures", "0021_saved_filters_to_console")]
    operations = [migrations.RunPython(write_codes, write_sentences)]
