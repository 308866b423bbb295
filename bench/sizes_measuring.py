"""How much the database grows by some thousands of rows of a kind. Each kind begins with a packed database,
so that nothing is written into room that another one left."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench import sizes_rows as rows_of
from bench.sizes_tables import bytes_by_table, pack, vacuum

LETTERS = {"1 KB": 1024, "10 KB": 10 * 1024}


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of one row of a kind, with its share of every index: as it lies there (`by_table` too), and
    packed."""

    kind: str
    as_it_lies: float
    packed: float
    by_table: dict[str, float]


def measure(rows: int) -> Iterator[Size]:
    """`rows` of each kind, into an empty, migrated database, outside a transaction."""
    places = rows_of.make_places()
    for name, size in LETTERS.items():
        pack()
        before = bytes_by_table()
        letters = rows_of.store_letters(places, rows, size)
        yield _grown(f"dead letter, body of {name}", before, rows)
        pack()
        packed = bytes_by_table()
        rows_of.replay(places, letters)
        replayed = _grown("replay of a dead letter", packed, rows)
        if size == min(LETTERS.values()):
            yield replayed
        rows_of.delete_bodies()
        rows_of.delete_replays()
        yield _grown(f"dead letter, body of {name} deleted", before, rows)
    kinds: dict[str, Callable[[rows_of.Places, int], None]] = {
        "failure protocol, traceback of 4 KB": rows_of.take_protocols,
        "activation with one run": rows_of.make_activations,
        "each further run": rows_of.add_runs,
        "failures of a kind in an activation on a server": rows_of.make_groups,
        "failures of a kind in an hour": rows_of.make_hours,
    }
    for kind, make in kinds.items():
        pack()
        before = bytes_by_table()
        make(places, rows)
        yield _grown(kind, before, rows)


def _grown(kind: str, before: dict[str, int], rows: int) -> Size:
    """Packs it too."""
    vacuum()
    lies = _of_a_row(before, rows)
    pack()
    return Size(kind, sum(lies.values()), sum(_of_a_row(before, rows).values()), lies)


def _of_a_row(before: dict[str, int], rows: int) -> dict[str, float]:
    now = bytes_by_table()
    grown = {table: (size - before.get(table, 0)) / rows for table, size in now.items()}
    return {table: size for table, size in grown.items() if size}
