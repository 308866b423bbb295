"""manage.py erase reaches the archive: blocks are written anew without what was personal, also after a
kill."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from failures.models import FailureProtocol
from insights.archive import planning
from insights.archive import planning as anew
from insights.archive.statements import Cut
from insights.models import ArchiveBlock, PoisonProfile
from pipeline import crash
from pipeline.archive.erasing import find
from pipeline.archive.erasing import substitute as in_archive
from pipeline.archive.reading import Archive
from retention.erasure.archive import _planned, _put_down, erase_in_archive, remember_for_archive
from retention.erasure.protocols import ArchiveNotErased, ErasureTarget, substitute
from retention.models import ArchiveErasure
from tests.pipeline import classes
from tests.pipeline.conftest import SETTINGS
from tests.pipeline.test_archive_of_the_ma import HOUR, archived
from tests.pipeline.test_archive_of_the_ma import switched_on as switched_on
from tests.pipeline.test_archive_of_the_ma import world as world

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.web.factories import World

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "Ivanov-4711"


@pytest.fixture
def local(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of Spark as cheap as the session of tests."""
    settings.MA_PIPELINE_MASTER = "local[1]"
    properties = tmp_path / "spark.properties"
    properties.write_text("".join(f"{name} {value}\n" for name, value in SETTINGS.items()))
    settings.MA_PIPELINE_PROPERTIES = str(properties)
    monkeypatch.setenv("JDK_JAVA_OPTIONS", classes.options())


def holding(folder: Path, text: str) -> list[str]:
    """Files of the archive in which it can be found. Parquet is packed: through Spark, below."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


@pytest.mark.timeout(600)
def test_what_is_erased_is_nowhere_in_the_archive_and_a_kill_in_the_middle_is_harmless(
    session: SparkSession, world: World, local: None, archive_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = FailureProtocol.objects.order_by("pk")[:3]
    key, setting = some[0].message_key, some[0].setting_key
    FailureProtocol.objects.filter(message_key=key, setting_key=setting).update(
        properties={"customer": SECRET}, traceback=f"of {SECRET}", exception_text=f"no {SECRET}"
    )
    count = FailureProtocol.objects.filter(message_key=key, setting_key=setting).count()
    archive, _ = archived(session, world.now + HOUR)
    rows = archive.rows("protocols").count()
    wanted = ErasureTarget(name="customer", value=SECRET)
    summed_up = Path(archive_url) / "derived/poison_counts/000001-run.json"
    summed_up.parent.mkdir(parents=True)
    summed_up.write_text(SECRET)
    for value in (SECRET, "Petrov"):
        PoisonProfile.objects.create(
            run_id=uuid4(), setting_key=setting, property="customer", value_bucket=value, dead=5, recovered=0,
            support=1.0, lift=2.0,
        )  # fmt: skip
    assert erase_in_archive(wanted, dry=True)["rows of the archive"] >= count
    assert summed_up.exists() and not anew.asked()

    remember_for_archive(wanted, [(setting, key)])
    monkeypatch.setitem(os.environ, crash.ASKED, "archive: after the manifest")
    monkeypatch.setitem(os.environ, crash.ALLOWED, "1")
    with pytest.raises(ArchiveNotErased):
        erase_in_archive(wanted, dry=False)
    archive.forget()
    assert archive.rows("protocols").count() == rows
    assert (
        ArchiveErasure.objects.exists() and ArchiveBlock.objects.filter(erases=True, state="planned").exists()
    )

    monkeypatch.delitem(os.environ, crash.ASKED)
    erase_in_archive(wanted, dry=False)
    archive.forget()
    found = archive.rows("protocols").collect()
    assert len(found) == rows
    assert not [row for row in found if SECRET in str(row)]
    assert not [row for row in found if (row["message_key"], row["setting_key"]) == (key, setting)]
    gone = [row for row in found if row["message_key"] == substitute(key)]
    assert len(gone) >= count and {(row["traceback"], row["properties"]) for row in gone} == {("", "{}")}
    assert not ArchiveErasure.objects.exists()
    assert not ArchiveBlock.objects.filter(state="planned").exists()
    # The old files are gone at once.
    named = {
        manifest.folder for kind in ("protocols", "letters") for manifest in archive.manifests(kind).values()
    }
    lying = {
        str(path.parent.relative_to(archive_url))
        for path in Path(archive_url).rglob("data/[pl]*/*/*/*.parquet")
    }
    assert lying == named
    assert holding(Path(archive_url), SECRET) == []
    # What was summed up of it is gone, and is summed up anew.
    assert not summed_up.exists() and anew.asked()
    assert [each.value_bucket for each in PoisonProfile.objects.all()] == ["Petrov"]


@pytest.mark.timeout(600)
def test_damage_hinders_no_erasing_and_what_lies_aside_is_told_or_goes(
    session: SparkSession, world: World, local: None, archive_url: str
) -> None:
    key, setting = FailureProtocol.objects.values_list("message_key", "setting_key").order_by("pk")[0]
    archive, _ = archived(session, world.now + HOUR)
    folder, damaged = Path(archive_url), next(iter(archive.manifests("letters").values()))
    other = next(each for each in archive.manifests("protocols").values() if each.files)
    broken = folder / damaged.path(damaged.files[0])
    broken.write_bytes(b"no Parquet")
    wanted = ErasureTarget(message_key=key)
    remember_for_archive(wanted, [(setting, key)])
    with pytest.raises(ArchiveNotErased, match=broken.name) as told:
        erase_in_archive(wanted, dry=False)

    assert told.value.counts["rows of the archive"] > 0
    archive.forget()
    assert not [row for row in archive.rows("protocols").collect() if row["message_key"] == key]
    assert other.block not in archive.manifests("protocols")
    aside = list((folder / "quarantine").rglob("*.parquet"))
    assert [each.name for each in aside] == [broken.name]
    block = ArchiveBlock.objects.get(kind="letters", number=damaged.block)
    assert block.state == "damaged" and broken.name in block.problem

    # It was read anew: what lies aside is needed by nobody.
    ArchiveBlock.objects.create(
        kind="letters", number=900, day=block.day, first=block.first, last=block.last,
        replaces=[block.number],
        state="verified", verified_at=world.now, rows=0,
    )  # fmt: skip
    assert erase_in_archive(wanted, dry=False)["unreadable files of the archive"] == 1
    assert not list((folder / "quarantine").rglob("*.parquet"))


def test_a_damaged_block_that_is_to_be_read_anew_is_waited_for_and_stays_damaged_when_it_is_erased(
    world: World, archive_url: str
) -> None:
    now = world.now
    old = planning.add("protocols", Cut(now - HOUR, now), now, state="damaged", rows=9, problem="gone")
    again = planning.add("protocols", Cut(now - HOUR, now), now, replaces=[old.number])
    found = [{"kind": "protocols", "block": old.number, "rows": 1}]
    with pytest.raises(ArchiveNotErased, match="run the pipeline first"):
        _planned(found, [], ErasureTarget(name="customer", value="4711"), now)
    again.delete()
    (block,) = _planned(found, [], ErasureTarget(name="customer", value="4711"), now)
    _put_down([{"kind": "protocols", "block": block.number, "rows": 4, "files": [{"bytes": 7}]}], now)
    block.refresh_from_db()
    assert (block.state, block.rows, block.problem, block.settled_at) == ("damaged", 9, "gone", None)


def test_both_sides_put_the_same_in_place_of_a_key(session: SparkSession, settings: Any) -> None:
    import hashlib

    key = hashlib.sha256(b"failures.erasing" + settings.SECRET_KEY.encode()).hexdigest()

    assert in_archive("ID:1-2", key) == substitute("ID:1-2")


def test_nothing_is_found_of_what_is_not_there(session: SparkSession, archive_url: str) -> None:
    wanted = {"message_key": "ID:none", "name": "", "value": "", "setting": "", "cases": [], "key": "00"}

    assert find(Archive(session, archive_url), wanted) == ([], set())
