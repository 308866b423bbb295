"""Takes out of the archive what it holds of certain messages: blocks that hold such rows are written anew,
with the rows and without what was personal in them, as the MA's database keeps them too.

python -m pipeline.archive.erasing ARCHIVE MASTER. What is wanted comes on standard input, never by a file, an
argument or a variable: first {"message_key", "name", "value", "setting", "cases": [[setting key, message
key]], "key"}, all texts; the answer is {"found": [{"kind", "block", "rows"}], "unreadable": [{"kind",
"block", "path", "why"}], "quarantined": [{"kind", "block", "path"}]}. Then {"blocks": [a block with
"replaces" for each], "discard": [paths of "quarantined"]}, and the answer is {"written": [manifest],
"failed": [{"kind", "number", "problem"}]}; what jobs derived goes too, where there are blocks. An empty line
instead: only that was to be known. Answers begin with ANSWER.

Files that cannot be read are left out, and told: `unreadable` are those of blocks that are there,
`quarantined` those that were moved aside, now or before.
"""

import hmac
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial, reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from pipeline import crash
from pipeline.archive import manifests
from pipeline.archive.files import ArchiveError
from pipeline.archive.manifests import Manifest
from pipeline.archive.quarantine import guarded, inspect_all
from pipeline.archive.reading import Archive
from pipeline.archive.source import PROPERTIES
from pipeline.archive.writing import Block, write
from pipeline.schemas import KINDS
from pipeline.session import build

ANSWER = "ANSWER "
# {kind: what its rows keep instead}, besides the key.
GONE: Mapping[str, Mapping[str, str | None]] = {
    "protocols": {
        "exception_text": "",
        "traceback": "",
        "properties": "{}",
        "body_digest": "",
        "traceparent": "",
    },
    "recovered": {},
    "letters": {"properties": "[]", "body": None},
    "replays": {},
}
Wanted = Mapping[str, Any]
Case = tuple[str, str]


def find(archive: Archive, wanted: Wanted) -> tuple[list[dict[str, Any]], set[Case]]:
    """Blocks that hold such rows, and the cases: those that are wanted, and those of messages with the
    property. As many are in memory as messages are to be erased."""
    for kind in GONE:
        inspect_all(archive, kind)
    cases = {(setting, key) for setting, key in wanted["cases"]} | _cases(archive, wanted)
    found = []
    for kind in GONE:
        counted = guarded(archive, partial(_counted, archive, kind, wanted, cases))
        found += [
            {"kind": kind, "block": archive.block_of(row["path"]), "rows": row["found"]} for row in counted
        ]
    return _by_block(found), cases


def rewrite(
    session: SparkSession, archive: Archive, block: Block, wanted: Wanted, cases: set[Case]
) -> Manifest:
    """The block that `block["replaces"]` names first, written anew. Raises ArchiveError."""
    if there := manifests.read_one(archive.files, block["kind"], block["number"]):
        return there
    kind, old = block["kind"], archive.manifests(block["kind"]).get(block["replaces"][0])
    if old is None:
        raise ArchiveError(
            f"block {block['replaces'][0]} of {kind} was replaced in the meantime: run it again"
        )
    rows = archive.read(KINDS[kind], _readable(archive, old))
    crash.point("erase: before a block")
    return write(session, block, _without(rows, kind, wanted, cases), archive, parts=len(old.files))


def substitute(message_key: str, key: str) -> str:
    """The same that the MA puts in its place (`retention.erasure.protocols`)."""
    return "erased:" + hmac.new(bytes.fromhex(key), message_key.encode(), "sha256").hexdigest()[:24]


def quarantined(archive: Archive) -> list[dict[str, Any]]:
    """Files that were moved aside, of kinds that tell of messages."""
    return [
        {"kind": kind, "block": archive.block_of(entry.path), "path": entry.path}
        for kind in GONE
        for entry in archive.files.walk(f"quarantine/{kind}")
    ]


def discard(archive: Archive, paths: Iterable[str]) -> None:
    known = {each["path"] for each in quarantined(archive)}
    for path in known.intersection(paths):
        archive.files.delete(path.removeprefix(archive.files.root).lstrip("/"))


def _readable(archive: Archive, manifest: Manifest) -> list[str]:
    gone = {each["path"] for each in archive.quarantined}
    paths = [archive.files.url(manifest.path(file)) for file in manifest.files]
    return [path for path in paths if path not in gone]


def _counted(archive: Archive, kind: str, wanted: Wanted, cases: set[Case]) -> list[Row]:
    rows = _all(archive, kind).where(_matches(kind, wanted, cases))
    return rows.groupBy("path").agg(F.count(F.lit(1)).alias("found")).collect()


def _all(archive: Archive, kind: str) -> DataFrame:
    every = [path for each in archive.manifests(kind).values() for path in _readable(archive, each)]
    return archive.read(KINDS[kind], every).withColumn("path", F.input_file_name())


def _cases(archive: Archive, wanted: Wanted) -> set[Case]:
    found: set[Case] = set()
    for kind in GONE:
        found |= guarded(archive, partial(_cases_of, archive, kind, wanted))
    return found


def _cases_of(archive: Archive, kind: str, wanted: Wanted) -> set[Case]:
    where = F.col("message_key") == wanted["message_key"] if wanted["message_key"] else _has(kind, wanted)
    if where is None:
        return set()
    rows = _all(archive, kind).where(where & _of_setting(wanted)).where("message_key <> ''")
    return {(row[0], row[1]) for row in rows.select("setting_key", "message_key").distinct().collect()}


def _has(kind: str, wanted: Wanted) -> Column | None:
    """The property with the value, where rows of the kind have properties."""
    if not wanted["name"]:
        return None
    if kind == "protocols":
        values = F.from_json("properties", "map<string, string>")
        return F.coalesce(F.try_element_at(values, F.lit(wanted["name"])) == wanted["value"], F.lit(False))
    if kind == "letters":
        items = F.from_json("properties", PROPERTIES)
        same = F.exists(
            items, lambda each: (each["name"] == wanted["name"]) & (each["value"] == wanted["value"])
        )
        return F.coalesce(same, F.lit(False))
    return None


def _of_setting(wanted: Wanted) -> Column:
    return F.col("setting_key") == wanted["setting"] if wanted["setting"] else F.lit(True)


def _matches(kind: str, wanted: Wanted, cases: Iterable[Case]) -> Column:
    keys = [
        F.struct(F.lit(setting).alias("setting_key"), F.lit(key).alias("message_key"))
        for setting, key in cases
    ]
    of_case = F.struct("setting_key", "message_key").isin(*keys) if keys else F.lit(False)
    has = _has(kind, wanted)
    return of_case if has is None else of_case | (has & _of_setting(wanted))


def _without(rows: DataFrame, kind: str, wanted: Wanted, cases: set[Case]) -> DataFrame:
    matches = _matches(kind, wanted, cases)
    told = {key: substitute(key, wanted["key"]) for _, key in cases}
    pairs = [part for key, other in told.items() for part in (F.lit(key), F.lit(other))]
    other = F.try_element_at(F.create_map(*pairs), F.col("message_key")) if pairs else F.lit(None)
    # Decided once, before anything of the row is changed.
    rows = rows.withColumn("_gone", matches)
    changed: dict[str, Column] = {"message_key": F.coalesce(other, F.col("message_key"))}
    changed |= {name: F.lit(value).cast("string") for name, value in GONE[kind].items()}
    for name, value in changed.items():
        rows = rows.withColumn(name, F.when(F.col("_gone"), value).otherwise(F.col(name)))
    return rows.drop("_gone")


def _by_block(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    def add(totals: dict[tuple[str, int], int], each: Mapping[str, Any]) -> dict[tuple[str, int], int]:
        place = (each["kind"], each["block"])
        return {**totals, place: totals.get(place, 0) + each["rows"]}

    empty: dict[tuple[str, int], int] = {}
    totals = reduce(add, found, empty)
    return [{"kind": kind, "block": block, "rows": rows} for (kind, block), rows in sorted(totals.items())]


def erase(url: str, master: str) -> None:
    wanted = json.loads(sys.stdin.readline())
    session = build(master, name="erasing", settings={"spark.ui.enabled": "false"})
    archive = Archive(session, url)
    found, cases = find(archive, wanted)
    _answer(found=found, unreadable=archive.quarantined, quarantined=quarantined(archive))
    line = sys.stdin.readline().strip()
    if line:
        asked = json.loads(line)
        done = _rewrite_all(session, archive, asked["blocks"], wanted, cases)
        if asked["blocks"]:
            # What jobs summed up of values of properties: the MA lets them sum up anew before it asks for
            # this.
            archive.files.delete("derived")
        discard(archive, asked["discard"])
        _answer(**done)
    session.stop()


def _rewrite_all(
    session: SparkSession, archive: Archive, blocks: Sequence[Block], wanted: Wanted, cases: set[Case]
) -> Mapping[str, list[Any]]:
    written: list[Any] = []
    failed: list[Any] = []
    for block in blocks:
        try:
            written.append(asdict(rewrite(session, archive, block, wanted, cases)))
            crash.point("erase: before the old one goes")
            forget_replaced(archive, [(block["kind"], number) for number in block["replaces"]])
        except ArchiveError as error:
            failed.append({"kind": block["kind"], "number": block["number"], "problem": str(error)})
    return {"written": written, "failed": failed}


def forget_replaced(archive: Archive, replaced: Iterable[tuple[str, int]]) -> None:
    """At once: what was erased must be nowhere. A job that reads them at this moment fails, and is done
    again."""
    for kind, number in replaced:
        if old := manifests.read_one(archive.files, kind, number):
            archive.files.delete(old.folder)
            archive.files.delete(manifests.place(kind, number))


def _answer(**told: Any) -> None:
    print(ANSWER + json.dumps(told), flush=True)


if __name__ == "__main__":
    erase(*sys.argv[1:3])
