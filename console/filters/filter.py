"""Parameters of a filter that say less than was meant, as an empty variable of a script leaves them. On a
page people see what was found; where a program asks they are refused: a filter that is misunderstood must
never find more than was meant."""

from collections.abc import Collection

from django.http import QueryDict
from django.utils.translation import gettext as _


def unclear(query: QueryDict, names: Collection[str], several: Collection[str] = ()) -> dict[str, str]:
    """Problems by name, of these names. `several`: of which more than one value counts."""
    problems = {}
    for name, values in query.lists():
        if name not in names:
            continue
        if not all(value.strip() for value in values):
            problems[name] = _("It has no value: leave it out, or say what it is to find.")
        elif len(values) > 1 and name not in several:
            problems[name] = _("It is there more than once; only one value can count.")
    return problems
