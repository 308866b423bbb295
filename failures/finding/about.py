"""How many there may be, where counting them would take too long."""

import json

from django.db import connection
from django.utils.translation import gettext as _

from console.ui.amounts import number
from failures.finding.asked import Asked
from failures.finding.search import Count
from failures.models import FailureProtocol


def words_of(counted: Count, asked: Asked) -> str:
    """`1,234`; past what is counted `about 1,200,000` where the database estimates it, else `10,000+`."""
    if not counted.more:
        return number(counted.count)
    about = _estimate(asked) if counted.back_to is None else None
    if about is None or about <= counted.count:
        return f"{number(counted.count)}+"
    return _("about %(n)s") % {"n": number(_rounded(about))}


def _estimate(asked: Asked) -> int | None:
    """What PostgreSQL expects from its statistics; SQLite keeps none."""
    if connection.vendor != "postgresql":
        return None
    plan = FailureProtocol.objects.filter(asked.rest, asked.times).order_by().explain(format="json")
    return int(json.loads(plan)[0]["Plan"]["Plan Rows"])


def _rounded(about: int) -> int:
    """To two digits: it is an estimate."""
    return round(about, 2 - len(str(about)))
