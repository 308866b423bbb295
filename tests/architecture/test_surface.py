"""What others rely on: routes, environment, tasks. A change shows as a diff of an approved file."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from celery import current_app
from django.conf import settings
from django.urls import URLPattern, get_resolver
from drf_spectacular.generators import SchemaGenerator

from kma.host.metrics import OF_KMA
from ma_site.scrape.declared import DECLARED
from tests.architecture.approval import assert_approved

ROOT = Path(__file__).resolve().parent.parent.parent
METHODS = ("get", "post", "put", "patch", "delete")
# Django's own six addresses of each kind of row.
OF_ROWS = re.compile(
    r"^(agents|alerts|auth|console|dlq|failures|retention)/\w+/(add/|<path:object_id>/.*|<id>/password/)?$"
)


def routes(patterns: Any, prefix: str = "") -> Iterator[str]:
    for entry in patterns:
        if isinstance(entry, URLPattern):
            yield prefix + str(entry.pattern)
        else:
            yield from routes(entry.url_patterns, prefix + str(entry.pattern))


def test_the_rest_interface_is_as_approved(db: None) -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    lines = []
    for path, operations in schema["paths"].items():
        for method in METHODS:
            if method in operations:
                operation = operations[method]
                who = ",".join(name for way in operation.get("security", []) for name in way) or "anybody"
                answers = ",".join(sorted(operation["responses"]))
                lines.append(f"{method.upper():<6} {path}  [{who}] → {answers}")
    assert_approved("rest.txt", "\n".join(sorted(lines, key=lambda line: line[7:])))


def test_the_bodies_of_the_rest_interface_are_as_approved(db: None) -> None:
    schemas = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    lines = []
    for name in sorted(schemas):
        for field, described in sorted(schemas[name].get("properties", {}).items()):
            # Of a whole number the format says which database the columns are in.
            whole = described.get("type") == "integer"
            kind = "integer" if whole else described.get("format") or described.get("type") or "object"
            marks = [mark for mark in ("readOnly", "nullable") if described.get(mark)]
            marks += ["required"] if field in schemas[name].get("required", []) else []
            lines.append(f"{name}.{field}: {kind} {' '.join(marks)}".rstrip())
    assert_approved("rest-bodies.txt", "\n".join(lines))


def test_the_addresses_of_the_site_are_as_approved() -> None:
    found = [route for route in routes(get_resolver().url_patterns) if not route.startswith("api/v1/")]
    assert_approved("pages.txt", "\n".join(sorted(route for route in found if not OF_ROWS.match(route))))


def test_the_environment_is_as_approved() -> None:
    lines = []
    for file in ("ma_site/env.py", "kma/host/config.py", "deploy/config.py", "deploy/remote/cli.py"):
        names = set(re.findall(r'"(K?MA_[A-Z_]+)"', (ROOT / file).read_text(encoding="utf-8")))
        lines += [f"{file}: {name}" for name in sorted(names)]
    assert_approved("environment.txt", "\n".join(lines))


def test_the_metrics_are_as_approved() -> None:
    """Dashboards and alert rules outside rest on their names and labels."""
    lines = []
    for process, declared in {**DECLARED, "kma": OF_KMA}.items():
        for each in declared:
            buckets = f" le={','.join(f'{bound:g}' for bound in each.buckets)}" if each.buckets else ""
            labels = f"{{{','.join(each.labels)}}}" if each.labels else ""
            lines.append(f"{process}: {each.kind.value} {each.name}{labels}{buckets}")
    names = [each.name for declared in (*DECLARED.values(), OF_KMA) for each in declared]
    assert len(names) == len(set(names))
    assert_approved("metrics.txt", "\n".join(lines))


def test_the_tasks_are_as_approved() -> None:
    current_app.loader.import_default_modules()
    ours = sorted(name for name in current_app.tasks if not name.startswith("celery."))
    schedule = [
        f"beat: {entry['task']} {entry['schedule']}" for entry in settings.CELERY_BEAT_SCHEDULE.values()
    ]
    assert_approved("tasks.txt", "\n".join([f"queue {settings.CELERY_TASK_DEFAULT_QUEUE}", *ours, *schedule]))
