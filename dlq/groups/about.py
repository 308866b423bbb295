"""How many letters there are about, where counting each would take too long."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.utils.translation import gettext as _

from console.ui.amounts import number
from dlq.given_rows import QUEUE, WHOLE, given_rows, type_of
from dlq.loose import IS_DEAD, TABLE

# Windows over the numbers of the letters of one range, how many letters are read in each, and in all of one
# statement.
WINDOWS, FEWEST_WINDOWS, READ, READ_OF_ALL = 20, 4, 50, 40_000
# Windows of one statement: databases bound its parameters.
AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Range:
    """Letters of a queue with one value of a column, as the database has it. `first` and `last` are the
    lowest and the highest of their numbers."""

    queue: str
    value: Any
    first: int
    last: int


def rounded(ranges: Sequence[Range], *, column: str = "") -> list[int]:
    """Estimates to two digits, by a few statements. Of what is dead: an index (queue, `column`, id) holds it.
    In each window between first and last so many numbers are letters as among the first READ there."""
    totals = [0.0] * len(ranges)
    windows = max(FEWEST_WINDOWS, min(WINDOWS, READ_OF_ALL // (READ * max(1, len(ranges)))))
    for known in (True, False):
        some = [(place, each) for place, each in enumerate(ranges) if (each.value is not None) is known]
        wide = [(place, each, *ends) for place, each in some for ends in _windows(each, windows)]
        for begin in range(0, len(wide), AT_ONCE):
            for place, start, end, read, highest in _read(wide[begin : begin + AT_ONCE], column, known):
                totals[place] += read if read < READ else READ * (end - start) / (highest - start + 1)
    return [two_digits(round(total)) for total in totals]


def _windows(each: Range, windows: int) -> Iterator[tuple[int, int]]:
    width = max(1, -(-(each.last - each.first + 1) // windows))
    for start in range(each.first, each.last + 1, width):
        yield start, min(start + width, each.last + 1)


def _read(wide: Sequence[tuple[int, Range, int, int]], column: str, known: bool) -> list[tuple[Any, ...]]:
    which = "" if not column else f" AND {column} = wide.v" if known else f" AND {column} IS NULL"
    here = (
        f"FROM {TABLE} WHERE queue = wide.q AND {IS_DEAD}{which} AND id >= wide.lo AND id "
        f"< wide.hi ORDER BY id"
    )
    rows = [(place, lo, hi, each.queue, each.value) for place, each, lo, hi in wide]
    columns = {
        "place": WHOLE,
        "lo": WHOLE,
        "hi": WHOLE,
        "q": QUEUE,
        "v": type_of(column) if column else WHOLE,
    }
    given, parameters = given_rows("wide", columns, rows)
    sql = (
        f"WITH {given} "
        f"SELECT place, lo, hi, (SELECT count(*) || ' ' || max(id) FROM (SELECT id {here} LIMIT {READ}) AS "
        f"few) "
        f"FROM wide"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [(*where, *map(int, read.split())) for *where, read in cursor.fetchall() if read]


def two_digits(count: int) -> int:
    """It is an estimate, so more would be a lie."""
    return round(count, -max(0, len(str(count)) - 2))


def about(count: int) -> str:
    return _("about %(n)s") % {"n": number(two_digits(count))}
