"""Takes what a run found into its tables: all of it or nothing, with what it replaces, in the transaction of
the run's end. Whoever is killed in it has loaded nothing, and the run is done anew."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models

from console.database import bulk
from insights.archive import planning
from insights.archive import planning as anew
from insights.archive import report as results
from insights.models import InsightTable, PipelineRun
from insights.runs.folder import TABLES

AT_ONCE = 5_000
# A database binds so many values in one statement, at least.
KEYS_AT_ONCE = 500


class BadReport(Exception):
    """The application's report, or a file of results, is not what was agreed: a fault of ours."""


def read_report(path: Path, run: PipelineRun) -> dict[str, Any]:
    """Raises BadReport."""
    try:
        report = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadReport(f"no report: {error}") from error
    if not isinstance(report, dict) or report.get("run") != str(run.pk):
        raise BadReport("the report belongs to another run")
    if not isinstance(report.get("stages"), list) or not isinstance(report.get("results"), list):
        raise BadReport("the report names no stages or no results")
    return report


def load(
    results: Sequence[Mapping[str, Any]], folder: Path, run: PipelineRun, now: datetime, until: Any
) -> int:
    """Loads inside a transaction. Returns how many rows. Raises BadReport."""
    names = [str(result.get("table")) for result in results]
    if len(set(names)) != len(names) or not set(names) <= TABLES.keys():
        raise BadReport(f"unknown or duplicate tables: {', '.join(names)}")
    total = 0
    for name, result in zip(names, results, strict=True):
        _delete(TABLES[name], result.get("replaces"), folder)
        rows = _insert(TABLES[name], folder / name, run)
        if rows != result.get("rows"):
            raise BadReport(f"{name}: {rows} rows found, {result.get('rows')} reported")
        kept = {
            "run": run,
            "rows": TABLES[name]._default_manager.count(),
            "computed_at": now,
            "data_until": until,
        }
        InsightTable.objects.update_or_create(name=name, defaults=kept)
        total += rows
    return total


def _delete(model: type[models.Model], replaces: Any, folder: Path) -> None:
    """`replaces`: {"all": true} | {"column", "from", "until"} (half-open, each may be missing) | {"column",
    "values_file"} (Parquet, one column)."""
    rows = model._default_manager.all()
    if not isinstance(replaces, dict):
        raise BadReport(f"{model._meta.model_name}: the replaced rows are not specified")
    if replaces.get("all") is True:
        rows.delete()
        return
    column = str(replaces.get("column"))
    field = _field(model, column)
    if "values_file" in replaces:
        values = [_value(field, value) for value in _listed(folder / str(replaces["values_file"]), column)]
        for start in range(0, len(values), KEYS_AT_ONCE):
            rows.filter(**{f"{column}__in": values[start : start + KEYS_AT_ONCE]}).delete()
        return
    bounds = {"gte": replaces.get("from"), "lt": replaces.get("until")}
    wanted = {
        f"{column}__{bound}": _value(field, value) for bound, value in bounds.items() if value is not None
    }
    if not wanted:
        raise BadReport(f"{model._meta.model_name}: {column} has no range")
    rows.filter(**wanted).delete()


def _listed(path: Path, column: str) -> list[Any]:
    if path.suffix == ".json":
        return list(json.loads(path.read_bytes()))
    return [row[column] for row in _rows(path, [column])]


def _field(model: type[models.Model], column: str) -> "models.Field[Any, Any]":
    found = next((field for field in model._meta.concrete_fields if field.attname == column), None)
    if found is None:
        raise BadReport(f"{model._meta.model_name} has no column {column}")
    return found


def _insert(model: type[models.Model], folder: Path, run: PipelineRun) -> int:
    fields = [field for field in model._meta.concrete_fields if field.attname not in ("id", "run_id")]
    names, count, waiting = [field.attname for field in fields], 0, list[models.Model]()
    for row in _rows(folder, names):
        values = {field.attname: _value(field, row[field.attname]) for field in fields}
        waiting.append(model(run_id=run.pk, **values))
        if len(waiting) == AT_ONCE:
            bulk.insert_rows(waiting)
            waiting.clear()
        count += 1
    bulk.insert_rows(waiting)
    return count


def _rows(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields rows of all Parquet files there, a part at a time. A folder without a file has no rows."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    for path in sorted(folder.rglob("*.parquet")):
        try:
            file = parquet.ParquetFile(path)
            lacking = set(names) - set(file.schema_arrow.names)
            if lacking:
                raise BadReport(f"{folder.name} lacks the columns {', '.join(sorted(lacking))}")
            for batch in file.iter_batches(AT_ONCE, columns=list(names)):
                yield from batch.to_pylist()
        except (arrow.ArrowException, OSError) as error:
            raise BadReport(f"{path.name} of {folder.name} cannot be read: {error}") from error


def _value(field: "models.Field[Any, Any]", value: Any) -> Any:
    """Returns the value as the field holds it. Raises BadReport for what no row of it may be."""
    try:
        if value is None:
            if not field.null:
                raise BadReport(f"{field.model._meta.model_name}.{field.attname} is missing")
            return None
        if isinstance(field, models.JSONField):
            return json.loads(value)
        found = field.to_python(value)
        if isinstance(found, datetime) and found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        if isinstance(found, float) and (found != found or found in (float("inf"), float("-inf"))):
            raise BadReport(f"{field.model._meta.model_name}.{field.attname} is not a number")
        if isinstance(field, models.IntegerField) and found < 0:
            raise BadReport(f"{field.model._meta.model_name}.{field.attname} is below 0")
        if isinstance(found, str) and field.max_length is not None and len(found) > field.max_length:
            raise BadReport(f"{field.model._meta.model_name}.{field.attname} is too long")
        if isinstance(field, models.CharField) and field.choices and found not in dict(field.flatchoices):
            raise BadReport(f"{field.model._meta.model_name}.{field.attname} is not {found!r}")
        return found
    except (ValidationError, ValueError, TypeError) as error:
        raise BadReport(f"{field.model._meta.model_name}.{field.attname}: {error}") from error


# -- what the archive has to do in a run ---------------------------------------------------------------------


def drivers() -> list[Path]:
    """Jars by which Spark reads this database."""
    return [Path(path) for path in settings.MA_PIPELINE_DRIVERS]


def archive_plan(run: PipelineRun, now: datetime) -> dict[str, Any]:
    return planning.plan(now)


def take_archive_report(
    report: Mapping[str, Any], planned: Mapping[str, Any], run: PipelineRun, now: datetime, computed: bool
) -> None:
    """Call it inside the transaction that loads the results."""
    restored = results.take_report(report, now)
    if computed:
        results.mark_computed(planned["new_blocks"], run)
        anew.done(planned["anew_requests"])
    if restored and not planned["anew_requests"]:
        anew.request_recomputation("damaged rows of the archive can be read again")


def preview_archive(now: datetime) -> dict[str, int]:
    """Rows by kind that the next run would archive; nothing is planned by asking."""
    return planning.preview_blocks(now)
