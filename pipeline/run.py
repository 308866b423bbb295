"""One run as its jobs see it: what is new, which hours, days and stretches of time that touches, where to
read, where to write."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructField, StructType, TimestampType

from contract.names import HISTORY_KEY
from pipeline.archive.manifests import Manifest
from pipeline.archive.reading import Archive
from pipeline.derived import Derived
from pipeline.jobs.failure_trends import hours
from pipeline.plan import Plan
from pipeline.results import SETTINGS, TABLES, told

HOUR = timedelta(hours=1)
# Files are chosen by so many stretches of time at most.
MOST_STRETCHES = 20

Stretch = tuple[datetime, datetime]  # half-open


def hours_between(since: datetime, until: datetime) -> list[datetime]:
    """Those that begin before `until` and end after `since`."""
    hour = since.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    found = []
    while hour < until:
        found.append(hour)
        hour += HOUR
    return found


def days_of(hours: Iterable[datetime], zone: str) -> list[date]:
    """In order. An hour may be of two days where a zone is off by a part of an hour."""
    of = ZoneInfo(zone)
    ends = (end for hour in hours for end in (hour, hour + HOUR - timedelta(microseconds=1)))
    return sorted({end.astimezone(of).date() for end in ends})


def stretch_of(day: date, zone: str) -> Stretch:
    """23, 24 or 25 hours."""
    of = ZoneInfo(zone)
    first, last = (datetime.combine(each, time(), of) for each in (day, day + timedelta(days=1)))
    return first.astimezone(UTC), last.astimezone(UTC)


def stretches(pieces: Iterable[Stretch]) -> list[Stretch]:
    """What covers them: the smallest gaps are closed until there are MOST_STRETCHES."""
    found: list[Stretch] = []
    for first, last in sorted(pieces):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    while len(found) > MOST_STRETCHES:
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(found)]
        at = gaps.index(min(gaps))
        found[at : at + 2] = [(found[at][0], found[at + 1][1])]
    return found


def blocks_that_hold(manifests: Collection[Manifest], wanted: Sequence[Stretch]) -> list[int]:
    """Of which rows can have occurred then, or were received then: a clock that is not believed says
    nothing."""
    texts = [(_text(first), _text(last)) for first, last in wanted]
    return [each.block for each in manifests if any(_holds(each, first, last) for first, last in texts)]


def _holds(manifest: Manifest, first: str, last: str) -> bool:
    if manifest.overlaps(first, last) or manifest.occurred_min is None or manifest.occurred_max is None:
        return True
    return manifest.occurred_min < last and first <= manifest.occurred_max


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


# More hours than this are not told one by one: clocks that were wrong, or years at once.
MOST_HOURS = 20_000
# On both sides of an activation: clocks of servers differ.
CLOCKS = timedelta(hours=1)

ALL: dict[str, Any] = {"all": True}


@dataclass(frozen=True, slots=True)
class Result:
    """A table that was written. `replaces`: what of the MA's table it takes the place of."""

    table: str
    rows: int
    replaces: dict[str, Any]


class Run:
    """`results`: what was written so far."""

    def __init__(self, session: SparkSession, plan: Plan, archive: Archive) -> None:
        self.session, self.plan, self.archive = session, plan, archive
        self.new_blocks = {kind: present(archive, kind, numbers) for kind, numbers in plan.new_blocks.items()}
        self.derived = Derived(archive, plan.run, self.new_blocks, anew=plan.anew)
        self.results: list[Result] = []
        self._kept: list[DataFrame] = []

    # -- what there is ---------------------------------------------------------------------------------------

    @property
    def settings(self) -> DataFrame:
        return told(self.session, ({"count_once": False, **each} for each in self.plan.settings), SETTINGS)

    def is_new(self, *kinds: str) -> bool:
        return any(self.new_blocks.get(kind) for kind in kinds)

    @property
    def again(self) -> Stretch | None:
        """What a person asked to compute again."""
        if self.plan.since is None and self.plan.until is None:
            return None
        return self.plan.since or datetime(2000, 1, 1, tzinfo=UTC), self.plan.until or self.plan.now

    def all_new(self, kind: str) -> bool:
        return set(self.archive.manifests(kind)) <= set(self.new_blocks.get(kind, ()))

    def new(self, kind: str) -> DataFrame:
        return self._known(self.archive.rows(kind, blocks=self.new_blocks.get(kind, ())))

    def all(self, kind: str) -> DataFrame:
        return self._known(self.archive.rows(kind))

    def of(self, kind: str, wanted: Sequence[Stretch]) -> DataFrame:
        """Rows of blocks that can hold what occurred then; they hold others too."""
        blocks = blocks_that_hold(list(self.archive.manifests(kind).values()), stretches(wanted))
        return self._known(self.archive.rows(kind, blocks=blocks))

    def within(self, kind: str, occurred: Stretch) -> DataFrame:
        return self._known(self.archive.rows(kind, occurred=occurred))

    def _known(self, rows: DataFrame) -> DataFrame:
        """Without the made-up history that somebody removed: the archive still holds it, and nobody shall see
        it."""
        if any(each.get("key") == HISTORY_KEY for each in self.plan.settings):
            return rows
        return rows.where(~F.col("setting_key").eqNullSafe(F.lit(HISTORY_KEY)))

    def span_of_new(self, *kinds: str) -> Stretch | None:
        """From the first to the last occurrence in the new blocks, as their manifests tell."""
        ends = [
            end
            for each in self._manifests_of_new(kinds)
            for end in (each.occurred_min, each.occurred_max)
            if end is not None
        ]
        if not ends:
            return None
        first, last = (datetime.fromisoformat(end) for end in (min(ends), max(ends)))
        return first, last + timedelta(microseconds=1)

    def rows_of_new(self, *kinds: str) -> int:
        """In the files of the new blocks."""
        return sum(each.rows for each in self._manifests_of_new(kinds))

    def _manifests_of_new(self, kinds: Sequence[str]) -> list[Manifest]:
        return [
            manifest
            for kind in kinds
            for manifest in self.archive.manifests(kind).values()
            if {manifest.block, *manifest.replaces} & set(self.new_blocks.get(kind, ()))
        ]

    # -- what is touched -------------------------------------------------------------------------------------

    @cached_property
    def touched_hours(self) -> list[datetime] | None:
        """Of new protocols, and those to compute again; None: all that there are."""
        if self.all_new("protocols"):
            return None
        found = hours(self.new("protocols")).limit(MOST_HOURS + 1).collect()
        if len(found) > MOST_HOURS:
            return None
        touched = {row["hour"].replace(tzinfo=UTC) for row in found}
        if self.again is not None:
            touched.update(hours_between(*self.again))
        return sorted(touched) if len(touched) <= MOST_HOURS else None

    def touched_days(self) -> list[date] | None:
        return None if self.touched_hours is None else days_of(self.touched_hours, self.plan.zone)

    def stretches_of(self, days: Sequence[date]) -> list[Stretch]:
        return [stretch_of(day, self.plan.zone) for day in days]

    @cached_property
    def activations(self) -> DataFrame:
        """Those that have ended and are touched by a new row of theirs, or ended in what is to be computed
        again."""
        ended = self.all("activations").where(F.col("ended_at").isNotNull())
        if not self.all_new("activations"):
            ids = self.new("activations").select(F.col("id").alias("activation"))
            for kind in ("runs", "trips", "protocols"):
                ids = ids.unionByName(self.new(kind).select("activation"))
            asked = F.lit(False)
            if self.again is not None:
                first, last = (F.lit(end) for end in self.again)
                asked = (F.col("ended_at") >= first) & (F.col("ended_at") < last)
            named = ids.where(F.col("activation").isNotNull()).distinct().withColumn("named", F.lit(True))
            joined = ended.join(named, ended["id"] == named["activation"], "left")
            ended = joined.where(F.col("named") | asked).select(*ended.columns)
        return self.keep(ended)

    @cached_property
    def lifetime(self) -> Stretch | None:
        """From the first start to the last end of the touched activations."""
        found = self.activations.agg(
            F.min("started_at").alias("first"), F.max("ended_at").alias("last")
        ).first()
        if found is None or found["first"] is None:
            return None
        first, last = (found[name].replace(tzinfo=UTC) for name in ("first", "last"))
        return first - CLOCKS, last + CLOCKS

    def keep(self, frame: DataFrame) -> DataFrame:
        """Read once, until the run is over."""
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    def drop(self) -> None:
        for frame in self._kept:
            frame.unpersist()

    # -- what comes out --------------------------------------------------------------------------------------

    def write(self, table: str, rows: DataFrame, replaces: dict[str, Any] = ALL) -> None:
        """`rows` in the schema of the table."""
        assert rows.columns == TABLES[table].names, rows.columns
        place = f"{self.plan.results}/{table}"
        rows.write.mode("overwrite").parquet(place)
        number = self.session.read.schema(TABLES[table]).parquet(place).count()
        self.results.append(Result(table, number, replaces))

    def write_replaced(self, table: str, values: DataFrame) -> dict[str, Any]:
        """`values`: one column of the table; every row with one of them goes."""
        values.write.mode("overwrite").parquet(f"{self.plan.results}/replaced/{table}")
        return {"column": values.columns[0], "values_file": f"replaced/{table}"}

    def hours_frame(self, hours: Sequence[datetime]) -> DataFrame:
        return told(
            self.session,
            ({"hour": hour} for hour in hours),
            StructType([StructField("hour", TimestampType())]),
        )

    def days_frame(self, days: Sequence[date]) -> DataFrame:
        return told(
            self.session, ({"day": day} for day in days), StructType([StructField("day", DateType())])
        )


def present(archive: Archive, kind: str, numbers: Sequence[int]) -> list[int]:
    """Those that are in the archive, under their number or under that of the block that replaced them: one
    that could not be written is new again the next time."""
    current = archive.manifests(kind)
    there = {number for each in current.values() for number in each.replaces} | set(current)
    return sorted(there.intersection(numbers))
