"""The site and the application know the same jobs, and the same columns of their results."""

from django.db import models

from insights.runs.folder import JOBS, LABELS, TABLES


def test_the_site_and_the_application_name_the_same_jobs_and_tables() -> None:
    from pipeline import jobs_of_run, results

    assert set(jobs_of_run.JOBS) == set(JOBS) == set(LABELS)
    assert set(results.TABLES) == set(TABLES) == {table for tables in JOBS.values() for table in tables}


def test_every_column_that_is_loaded_is_one_that_is_written() -> None:
    from pipeline import results

    for name, model in TABLES.items():
        written = {field.name: field for field in results.TABLES[name].fields}
        for field in model._meta.concrete_fields:
            if field.attname in ("id", "run_id"):
                continue
            assert field.attname in written, (name, field.attname)
            assert not isinstance(field, models.TextField), (name, field.attname)
