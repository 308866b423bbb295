"""Every migration is applied."""

from collections.abc import Iterator
from datetime import datetime

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from ma_site.checks.finding import Finding, bad, good, register


@register("migrations", 20)
def check(now: datetime) -> Iterator[Finding]:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in missing[:5])
        yield bad(f"{len(missing)} are not applied: {names}", "./ma manage migrate")
    else:
        yield good("all applied")
