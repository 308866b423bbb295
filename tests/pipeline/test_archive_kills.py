"""spark-submit killed with SIGKILL between all stages, and run again: readers see whole blocks, each row
once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from deploy.config import REPOSITORY
from pipeline import crash
from pipeline.archive.reading import Archive, iso
from tests.pipeline.classes import SHORT_LIVED
from tests.pipeline.conftest import SETTINGS
from tests.pipeline.rows_in_sqlite import NOON, Database, block, minutes

pytestmark = pytest.mark.night

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
SECONDS = 240
ROWS = 12_000  # of the second block, the first has one


class House:
    """A database, an archive and a plan of two blocks."""

    def __init__(self, folder: Path, jars: str) -> None:
        self.folder, self.jars = folder, jars
        self.database = Database(folder / "db.sqlite3")
        self.database.add_protocol("alone", NOON)
        self.database.add_protocol("first", NOON + minutes(10), traceback="T" * 2000)
        self.database.run(
            f"""WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS - 1})
            INSERT INTO protocols (id, received_at, occurred_at, setting_key, traceback)
            SELECT 'p' || i, strftime('%Y-%m-%d %H:%M:%f', '2026-11-22 12:10:00',
            '+' || (i % 590) || ' seconds'),
            occurred_at, setting_key, hex(randomblob(600)) FROM n JOIN protocols WHERE id = 'first'"""
        )
        splits = [iso(NOON + minutes(10) + timedelta(seconds=seconds)) for seconds in range(100, 600, 100)]
        source = self.database.source
        self.plan: dict[str, Any] = {
            "archive": str(folder / "archive"),
            "source": {"url_env": "JDBC", "statements": dict(source.statements)},
            "blocks": [
                block(1, NOON, NOON + minutes(10)), block(2, NOON + minutes(10), NOON + minutes(20),
                splits=splits),
            ],
            "verify": [],
        }  # fmt: skip
        (folder / "plan.json").write_text(json.dumps(self.plan))

    def submit(self, **environment: str) -> subprocess.Popen[bytes]:
        settings = {**SETTINGS, "spark.ui.enabled": "false"}
        command = [str(SUBMIT), "--master", "local[1]", "--driver-memory", "700m", "--jars", self.jars]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        command += [str(REPOSITORY / "tests/pipeline/archive_only.py"), "plan.json", "report.json"]
        known = {
            **os.environ, "JDBC": self.database.source.url, "PYTHONPATH": str(REPOSITORY),
            "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable,
            "JDK_JAVA_OPTIONS": SHORT_LIVED, **environment,
        }  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=known,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )

    def killed_at(self, point: str) -> None:
        process = self.submit(**{crash.ASKED: point, crash.ALLOWED: "1"})
        assert process.wait(SECONDS) == -signal.SIGKILL, (self.folder / "log").read_text()[-3000:]

    def killed_after_its_first_file(self) -> None:
        process = self.submit()
        deadline = time.monotonic() + SECONDS
        while not list(
            (self.folder / "archive/data").glob("*/*/block-000002-*/_temporary/**/part-*.parquet")
        ):
            assert process.poll() is None and time.monotonic() < deadline, (self.folder / "log").read_text()[
                -3000:
            ]
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(SECONDS) == -signal.SIGKILL

    def ended(self) -> Mapping[str, Any]:
        assert self.submit().wait(SECONDS) == 0, (self.folder / "log").read_text()[-3000:]
        report: Mapping[str, Any] = json.loads((self.folder / "report.json").read_text())
        return report


@pytest.mark.timeout(600)
def test_killed_at_every_stage_and_run_again_each_row_is_there_once(
    session: SparkSession, tmp_path: Path, jars: str
) -> None:
    house = House(tmp_path, jars)

    def seen() -> int:
        return Archive(session, house.plan["archive"]).rows("protocols").count()

    house.killed_at("archive: planned")
    assert seen() == 0
    house.killed_at("archive: before the manifest")
    assert seen() == 0
    house.killed_at("archive: after the manifest")
    assert seen() == 1
    house.killed_after_its_first_file()
    assert seen() == 1
    report = house.ended()

    assert report["failed"] == []
    assert [(each["block"], each["rows"]) for each in report["written"]] == [(1, 1), (2, ROWS)]
    assert [each["ok"] for each in report["verified"]] == [True, True]
    archive = Archive(session, house.plan["archive"])
    rows = archive.rows("protocols")
    assert (rows.count(), rows.select("id").distinct().count()) == (ROWS + 1, ROWS + 1)
    # Nothing is left of the attempts that were killed: tools that read every file of the folder see each row
    # once too.
    named = {
        manifest.path(file) for manifest in archive.manifests("protocols").values() for file in manifest.files
    }
    lying = {
        str(path.relative_to(tmp_path / "archive")) for path in (tmp_path / "archive/data").rglob("*.parquet")
    }
    assert lying == named
