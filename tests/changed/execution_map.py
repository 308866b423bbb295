"""Which test executed which functions, templates and other files: one SQLite file."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.changed.changes import Change
from tests.changed.functions import WHOLE
from tests.services import cache

SCHEMA = """
CREATE TABLE IF NOT EXISTS test (id INTEGER PRIMARY KEY, name TEXT UNIQUE, seconds REAL, places INTEGER);
CREATE TABLE IF NOT EXISTS place (id INTEGER PRIMARY KEY, path TEXT, function TEXT, UNIQUE (path, function));
CREATE TABLE IF NOT EXISTS executed (
    place INTEGER, test INTEGER, lines INTEGER, PRIMARY KEY (place, test)
) WITHOUT ROWID;
"""
BUSY_SECONDS = 120
# Weight of a function that changed but not in the lines that a test executes, or only its file around it.
BESIDE = 0.1

Place = tuple[str, str]


@dataclass(frozen=True)
class Executed:
    """Of one test; of each place the bits of its lines."""

    seconds: float
    places: Mapping[Place, int]


@dataclass
class Known:
    """What the map says of a change. `touching`: the lower the value, the earlier the test."""

    touching: dict[str, tuple[float, int]] = field(default_factory=dict)
    tests: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def moved(self, files: Collection[str]) -> "Known":
        """With the paths of today. A file that moved keeps its name, until the next night records it anew."""
        places = defaultdict[str, list[str]](list)
        for file in files:
            places[_name(file)].append(file)
        today = {
            file: places[_name(file)][0]
            for file in self.tests
            if file not in files
            and len(places[_name(file)]) == 1
            and places[_name(file)][0] not in self.tests
        }
        touching = {}
        for name, key in self.touching.items():
            path, separator, rest = name.partition("::")
            touching[today.get(path, path) + separator + rest] = key
        tests = Counter({today.get(file, file): count for file, count in self.tests.items()})
        seconds = {today.get(file, file): spent for file, spent in self.seconds.items()}
        return Known(touching, tests, defaultdict(float, seconds))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def folder() -> Path:
    return cache() / "map"


def scratch() -> Path:
    """Where one is recorded; it becomes the map when it is whole."""
    return cache() / "map.new"


def file(where: Path) -> Path:
    return where / "executed.sqlite3"


def keep(where: Path, tests: Mapping[str, Executed], empty: Iterable[str] = ()) -> None:
    """Adds a session's tests, and files of which none was chosen; workers end at the same time, so each
    waits."""
    where.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file(where), timeout=BUSY_SECONDS, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        for name, executed in tests.items():
            _keep_one(connection, name, executed)
        connection.executemany(
            "INSERT OR IGNORE INTO test VALUES (NULL, ?, 0, 0)", [(path,) for path in empty]
        )
        connection.execute("COMMIT")


def _keep_one(connection: sqlite3.Connection, name: str, executed: Executed) -> None:
    row = (name, executed.seconds, len(executed.places))
    connection.execute("DELETE FROM executed WHERE test = (SELECT id FROM test WHERE name = ?)", row[:1])
    connection.execute(
        "INSERT INTO test (name, seconds, places) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET seconds = excluded.seconds, places = excluded.places",
        row,
    )
    connection.executemany(
        "INSERT OR IGNORE INTO place (path, function) VALUES (?, ?)", list(executed.places)
    )
    connection.executemany(
        "INSERT INTO executed SELECT place.id, test.id, ? FROM place, test"
        " WHERE path = ? AND function = ? AND name = ?",
        [(lines, *place, name) for place, lines in executed.places.items()],
    )


def read(where: Path, changes: Iterable[Change]) -> Known:
    """Empty where nothing was recorded."""
    known = Known()
    if not file(where).exists():
        return known
    with closing(sqlite3.connect(f"file:{file(where)}?mode=ro", uri=True)) as connection:
        for name, seconds in connection.execute("SELECT name, seconds FROM test"):
            known.tests[name.partition("::")[0]] += "::" in name
            known.seconds[name.partition("::")[0]] += seconds
        weights: defaultdict[str, float] = defaultdict(float)
        places = dict[str, int]()
        for change in changes:
            for function, tests in _executing(connection, change).items():
                bits = change.functions.get(function, 0)
                hit = [name for name, (lines, _) in tests.items() if lines & bits]
                share = 1 if function in change.functions and not hit else BESIDE
                for name, (_, others) in tests.items():
                    places[name] = others
                    weights[name] += share / len(tests)
                for name in hit:
                    weights[name] += 1 / len(hit)
    known.touching = {name: (-weight, places[name]) for name, weight in weights.items()}
    return known


def _executing(connection: sqlite3.Connection, change: Change) -> dict[str, dict[str, tuple[int, int]]]:
    """Per function the tests, with the lines that each executes and how much else it does; all functions
    where more than these changed."""
    found: defaultdict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    rows = connection.execute(
        "SELECT function, name, lines, places FROM place JOIN executed ON place = place.id JOIN test ON test "
        "= test.id"
        " WHERE path = ?",
        [change.path],
    )
    for function, name, lines, places in rows:
        if WHOLE in change.functions or function in change.functions:
            found[function][name] = lines, places
    return found
