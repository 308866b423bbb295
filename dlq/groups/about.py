"""How many letters there are about, where counting each would take too long."""

from typing import Any

from django.db import connection
from django.utils.translation import gettext as _

from agents.pages.amounts import number
from dlq.loose import TABLE

# Windows over the numbers of the letters, and how many letters are read in each.
WINDOWS, READ = 20, 50


def rounded(queue: str, state: str, first: int, last: int, *, column: str = "", value: Any = None) -> int:
    """An estimate to two digits, by one statement. An index (queue, state, `column`, id) holds the letters; `first` and
    `last` are the lowest and the highest of their numbers: in each window between them so many numbers are letters as
    among the first READ there."""
    width = max(1, -(-(last - first + 1) // WINDOWS))
    windows = [(start, min(start + width, last + 1)) for start in range(first, last + 1, width)]
    which = "" if not column else f" AND {column} IS NULL" if value is None else f" AND {column} = %s"
    one = (
        f"SELECT %s, count(*), max(id) FROM (SELECT id FROM {TABLE} WHERE queue = %s AND state = %s{which} "
        f"AND id >= %s AND id < %s ORDER BY id LIMIT {READ}) AS few"
    )
    given = [value] if column and value is not None else []
    values: list[Any] = []
    for place, (start, end) in enumerate(windows):
        values += [place, queue, state, *given, start, end]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join([one] * len(windows)), values)
        rows = cursor.fetchall()
    total = 0.0
    for place, read, highest in rows:
        start, end = windows[int(place)]
        total += read if read < READ else READ * (end - start) / (highest - start + 1)
    return two_digits(round(total))


def two_digits(count: int) -> int:
    """It is an estimate, so more would be a lie."""
    return round(count, -max(0, len(str(count)) - 2))


def about(count: int) -> str:
    return _("about %(n)s") % {"n": number(two_digits(count))}
