"""The whole site from SQLite to an empty PostgreSQL: every table with its ids, compared before anything
counts.

Nothing is written to the source, whose write lock is held from the first row to the last: nobody adds one
meanwhile. All rows are written in one transaction of the target, with the counts and the digests of all keys
compared before it is committed. Killed before that, the target has tables and no site, and the command may be
run again; after it the site is there, and so is an open rebuild of the index of words, with which the worker
goes on by itself.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from agents.models import LaunchSetting, Server
from agents.models.parameters import UnreadableJson
from console.audit.models import AuditEntry
from console.database.storage import database_file
from console.processes import ProcessHeartbeat
from contract.typed import storable
from dlq.models import DeadLetter, WordRebuild
from failures.models import FailureProtocol

TARGET = "target"
# Rows that are in memory at once; of models with bytes fewer.
ROWS, ROWS_WITH_BYTES = 500, 20
# Who has shown itself within this time still runs.
ALIVE = timedelta(seconds=90)
# What a site has once it is used.
OWN = (User, Server, LaunchSetting, DeadLetter, FailureProtocol, AuditEntry)


class NotMoved(Exception):
    """Says why nothing was moved, and what to do."""


@dataclass(slots=True)
class Table:
    """Holds what one table had and has: rows, and a digest of all keys that does not depend on their order.
    `changed`: texts with characters that PostgreSQL does not take, which are shown by others now."""

    name: str
    rows: int = 0
    digest: int = 0
    changed: int = 0

    def add(self, key: Any) -> None:
        self.rows += 1
        self.digest ^= int.from_bytes(blake2b(str(key).encode(), digest_size=8).digest(), "big")


def check_source(now: datetime) -> None:
    """Raises NotMoved."""
    if database_file() is None:
        raise NotMoved("The site does not use SQLite: there is nothing to move.")
    migrations = MigrationExecutor(connection)
    if migrations.migration_plan(migrations.loader.graph.leaf_nodes()):
        raise NotMoved(
            "Migrations of this site's database are missing: run ./ma manage migrate, then try again."
        )
    if running := running_processes(now):
        raise NotMoved(
            f"The site runs ({', '.join(running)}). Stop it with ./ma down, then try again; processes "
            f"that ./ma did not start count as running for {ALIVE.seconds} s after their last heartbeat."
        )


def running_processes(now: datetime) -> list[str]:
    """Those that have shown themselves lately, and since `./ma down` had ended all of them: by a heartbeat,
    the web by a server that it heard."""
    stopped = stopped_at()
    since = now - ALIVE
    if stopped is not None and since < stopped <= now:
        since = stopped
    found = list(ProcessHeartbeat.objects.filter(at__gt=since).values_list("process", flat=True))
    return [*found, "web"] if Server.objects.filter(last_seen_at__gt=since).exists() else found


def stopped_at() -> datetime | None:
    """When `./ma down` had ended everything; None where it never did, or does not run this site."""
    try:
        return datetime.fromisoformat((settings.MA_DATA / "run" / "stopped").read_text("utf-8").strip())
    except (OSError, ValueError):
        return None


def prepare_target(database: dict[str, Any], url: str) -> None:
    """Makes its tables, by a process of its own: migrations may ask whichever database is the site's.

    Raises NotMoved."""
    if "postgresql" not in database["ENGINE"]:
        raise NotMoved("The target must be postgresql://user:password@host:port/name.")
    options = {**settings.POSTGRESQL_OPTIONS, **database.get("OPTIONS", {})}
    connections.settings[TARGET] = {
        **connection.settings_dict,
        **database,
        "OPTIONS": options,
        "CONN_MAX_AGE": None,
    }
    target = connections[TARGET]
    try:
        tables = target.introspection.table_names()
    except DatabaseError as error:
        raise NotMoved(f"The target database does not answer: {str(error).strip()}") from error
    if tables:
        _check_empty(tables)
    done = run_there(url, "migrate", "--no-input")
    if done.returncode:
        raise NotMoved(f"The tables could not be created:\n{done.stderr.strip()[-2000:]}")
    here, there = (MigrationRecorder(each).applied_migrations().keys() for each in (connection, target))
    if here != there:
        raise NotMoved(
            "Migrations of this site's database are missing: run ./ma manage migrate, then try again."
        )


def _check_empty(tables: Sequence[str]) -> None:
    """One that a killed move left has tables and no row of its own."""
    own = [each._meta.db_table for each in OWN]
    if not set(own) <= set(tables):
        raise NotMoved("The target has other tables. Use an empty database.")
    for model in OWN:
        if model._default_manager.using(TARGET).exists():
            table = model._meta.db_table
            raise NotMoved(f"The target is not empty: {table} has rows. Use an empty database.")


def run_there(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """manage.py of a site whose database is the target."""
    environment = {name: value for name, value in os.environ.items() if name != "MA_DATABASE_URL_FILE"}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], env=environment | {"MA_DATABASE_URL": url},
        cwd=settings.BASE_DIR,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def move(now: datetime) -> list[Table]:
    """Every table as it is in the target. Raises NotMoved, and then nothing is there."""
    target = connections[TARGET]
    all_models = [each for each in apps.get_models(include_auto_created=True) if each._meta.managed]
    all_models = [each for each in all_models if not each._meta.proxy]
    with transaction.atomic(), transaction.atomic(using=TARGET):
        with target.cursor() as cursor:
            names = ", ".join(target.ops.quote_name(each._meta.db_table) for each in all_models)
            cursor.execute(f"TRUNCATE {names} CASCADE")
        moved = [_copy(model, target) for model in all_models]
        for model, table in zip(all_models, moved, strict=True):
            there = _read(model)
            if (there.rows, there.digest) != (table.rows, table.digest):
                counts = f"{table.rows} rows here, {there.rows} there, or others"
                raise NotMoved(f"{table.name}: {counts}. Nothing was moved.")
        _continue_numbers(all_models, target)
        rebuilds = WordRebuild.objects.using(TARGET)
        rebuilds.filter(open=True).update(open=False, ended_at=now)
        last = DeadLetter.objects.using(TARGET).order_by("-pk").values_list("pk", flat=True).first()
        rebuilds.create(began_at=now, last=last or 0)
    return moved


def _fields(model: type[models.Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if not field.generated]


def _copy(model: type[models.Model], target: BaseDatabaseWrapper) -> Table:
    table, fields = Table(model._meta.db_table), _fields(model)
    columns = ", ".join(target.ops.quote_name(field.column) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    sql = f"INSERT INTO {target.ops.quote_name(table.name)} ({columns}) VALUES ({marks})"
    place = [field.attname for field in fields].index(_key(model).attname)
    for rows in _chunks(model, [field.attname for field in fields], place):
        values = []
        for row in rows:
            table.add(row[place])
            values.append(
                [_value(field, value, table, target) for field, value in zip(fields, row, strict=True)]
            )
        try:
            with target.cursor() as cursor:
                cursor.executemany(sql, values)
        except DatabaseError as error:
            why = f"{table.name}: PostgreSQL refuses a row: {str(error).strip()}"
            raise NotMoved(f"{why}. Nothing was moved.") from error
    return table


def _value(field: Any, value: Any, table: Table, target: BaseDatabaseWrapper) -> Any:
    clean = _clean(value)
    if clean != value:
        table.changed += 1
    return field.get_db_prep_save(clean, target)


def _clean(value: Any) -> Any:
    """Texts without NUL and lone surrogates, also inside of JSON: PostgreSQL takes neither. Raises
    NotMoved."""
    if isinstance(value, UnreadableJson):
        raise NotMoved("A setting has unreadable parameters: find it with ./ma doctor and enter them again.")
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {_clean(name): _clean(each) for name, each in value.items()}
    return value


def _key(model: type[models.Model]) -> Any:
    key: Any = model._meta.pk
    return key


def _chunks(model: type[models.Model], names: list[str], place: int) -> Iterator[list[tuple[Any, ...]]]:
    size = ROWS_WITH_BYTES if any(isinstance(each, models.BinaryField) for each in _fields(model)) else ROWS
    rows: Any = model._base_manager.using("default").order_by(_key(model).attname).values_list(*names)
    after: Any = None
    while found := list((rows if after is None else rows.filter(pk__gt=after))[:size]):
        yield found
        after = found[-1][place]


def _read(model: type[models.Model]) -> Table:
    table = Table(model._meta.db_table)
    for key in model._base_manager.using(TARGET).order_by().values_list("pk", flat=True).iterator(10_000):
        table.add(key)
    return table


def _continue_numbers(all_models: Sequence[type[models.Model]], target: BaseDatabaseWrapper) -> None:
    """Continues numbers where SQLite would have: numbers of rows that were deleted are not given again."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, seq FROM sqlite_sequence")
        used = dict(cursor.fetchall())
    with target.cursor() as cursor:
        for model in all_models:
            key, table = _key(model), model._meta.db_table
            if isinstance(key, models.AutoField) and (last := used.get(table)):
                name = target.ops.quote_name(table)
                cursor.execute("SELECT setval(pg_get_serial_sequence(%s, %s), %s)", [name, key.column, last])
