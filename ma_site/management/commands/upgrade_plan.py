"""manage.py upgrade_plan: what ./ma upgrade asks of the database before it changes anything."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection, migrations
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations.base import Operation

from ma_site.upgrades import ADDS, INDEXES, MAKES, RUNS, Plan, Step, estimate

JOBS = "SELECT count(*) FROM dlq_replayjob WHERE state IN ('planned', 'running')"
MADE = (migrations.CreateModel, migrations.AlterModelOptions, migrations.AlterModelManagers)
INDEX = (migrations.AddIndex, migrations.AddConstraint)
PROGRAM = (migrations.RunPython, migrations.RunSQL)


class Command(BaseCommand):
    help = "Prints as JSON which migrations are missing, how long they lock, and which jobs go on afterwards."
    # It asks a database of before this version: nothing here may need a column that is not there yet.
    requires_migrations_checks = False
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
        tables = connection.introspection.table_names()
        plan = Plan(
            tuple(step for migration, _back in pending for step in _steps(migration, tables)),
            sorted(f"{app}.{name}" for app, name in executor.loader.applied_migrations),
            _one(JOBS) if "dlq_replayjob" in tables else 0,
        )
        self.stdout.write(json.dumps(asdict(plan)))


def _steps(migration: migrations.Migration, tables: list[str]) -> Iterator[Step]:
    name, sqlite = f"{migration.app_label}.{migration.name}", connection.vendor == "sqlite"
    largest = max(
        (_rows(table) for table in tables if table.startswith(f"{migration.app_label}_")), default=0
    )
    for operation in migration.operations:
        kind, model = _kind(operation), getattr(operation, "model_name", "")
        table = f"{migration.app_label}_{model.lower()}" if model else ""
        # A program may go through any table of its app.
        rows = largest if kind == RUNS else _rows(table) if table in tables else 0
        yield Step(name, table, rows, estimate(kind, rows, sqlite=sqlite), operation.reversible)


def _kind(operation: Operation) -> str:
    if isinstance(operation, MADE):
        return MAKES
    if isinstance(operation, INDEX):
        return INDEXES
    return RUNS if isinstance(operation, PROGRAM) else ADDS


def _rows(table: str) -> int:
    return _one(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")


def _one(query: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return int(cursor.fetchone()[0])
