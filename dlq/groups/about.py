"""How many letters there are about, where counting each would take too long."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.pages.amounts import number
from dlq.models import DeadLetter

# Windows over the numbers of the letters, and how many letters are read in each.
WINDOWS, READ = 20, 50


def rounded(rows: QuerySet[DeadLetter], first: int, last: int) -> int:
    """An estimate to two digits. `rows` have an index that ends in their numbers; `first` and `last` are the lowest and
    the highest: in each window between them so many numbers are letters as among the first READ there."""
    width = -(-(last - first + 1) // WINDOWS)
    total = 0.0
    for start in range(first, last + 1, width):
        end = min(start + width, last + 1)
        window = rows.filter(pk__gte=start, pk__lt=end).order_by("pk")
        read = list(window.values_list("pk", flat=True)[:READ])
        total += len(read) if len(read) < READ else READ * (end - start) / (read[-1] - start + 1)
    return two_digits(round(total))


def two_digits(count: int) -> int:
    """It is an estimate, so more would be a lie."""
    return round(count, -max(0, len(str(count)) - 2))


def about(count: int) -> str:
    return _("about %(n)s") % {"n": number(two_digits(count))}
