"""Each call of a block's writing to the files of the archive fails once, before or after it had its
effect."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.archive.files import ArchiveError, Files
from pipeline.archive.reading import Archive
from pipeline.archive.stages import verify_block
from pipeline.archive.writing import archive_block
from tests.pipeline.rows_in_sqlite import NOON, Database, block, minutes

CALLS = ("exists", "list", "write_new", "move", "delete")
ONE = dict(block(1, NOON, NOON + minutes(5)))


class NthFails:
    """`made`: calls of the files so far."""

    def __init__(self, n: int, *, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        self._n, self._after = n, after
        for name in CALLS:
            monkeypatch.setattr(Files, name, self._failing(name, getattr(Files, name)))

    def _failing(self, name: str, method: Any) -> Any:
        def call(files: Files, *arguments: Any) -> Any:
            self.made.append(name)
            fails = len(self.made) == self._n
            if fails and not self._after:
                raise ArchiveError(f"{name}: Input/output error")
            answer = method(files, *arguments)
            if fails:
                raise ArchiveError(f"{name}: Input/output error")
            return answer

        return call


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_block_is_written_once_whichever_call_fails(
    session: SparkSession, tmp_path: Path, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path / "db.sqlite3")
    for number in (1, 2):
        database.add_protocol(f"row-{number}", NOON + minutes(number))
    for n in range(1, 100):
        place = str(tmp_path / f"archive-{n}")
        said = ""
        with monkeypatch.context() as patched:
            calls = NthFails(n, after=after, monkeypatch=patched)
            try:
                archive_block(session, ONE, database.source, Archive(session, place))
            except ArchiveError as error:
                said = str(error)
        archive = Archive(session, place)
        found = [row["id"] for row in archive.rows("protocols").collect()]
        assert sorted(found) in ([], ["row-1", "row-2"]), f"half a block: {calls.made}"
        assert found or said, f"nothing was written, and nothing said so: {calls.made}"
        archive_block(session, ONE, database.source, archive)
        archive.forget()
        assert sorted(row["id"] for row in archive.rows("protocols").collect()) == ["row-1", "row-2"], (
            calls.made
        )
        verify_block(session, ONE, database.source, archive)
        if len(calls.made) < n:
            assert n > 3 and not said
            return
    raise AssertionError("more calls than thought")
