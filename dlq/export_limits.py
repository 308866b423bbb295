"""What an export over the web is allowed to take: letters, time, threads. The command line has none of these
limits."""

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from console.audit.log import Person, record
from console.audit.models import AuditResult
from console.database import quick
from console.exports.stream import Stream
from console.operations.refusals import Refused
from console.ui.amounts import number
from dlq.finding.told import query_for_all
from dlq.models import DeadLetter

# Letters of one file: heads of bodies, or whole letters of up to 1 MB.
MOST, MOST_WHOLE = 100_000, 10_000
EXPORT = "dead_letters.export"


def audit_target(key: str) -> str:
    return f"setting:{key}" if key else "letters:all"


def most(*, bodies: bool) -> int:
    return MOST_WHOLE if bodies else MOST


def checked_count(letters: QuerySet[DeadLetter], *, bodies: bool) -> int:
    """How many there are. Raises Refused."""
    limit = most(bodies=bodies)
    with quick():
        count = letters.order_by()[: limit + 1].count()
    if count > limit:
        text = _(
            "More than %(n)s letters: narrow the filter, or let the command line write the file: %(command)s"
        )
        raise Refused("too_many", text % {"n": number(limit), "command": "./ma manage dlq export"})
    return count


def stream_of(texts: Iterable[str], *, by: Person, about: dict[str, Any], begin: str = "") -> Stream:
    """Told in the audit. Raises Refused where all places are taken."""
    done, failed = AuditResult.DONE, AuditResult.FAILED
    return Stream(texts, told=lambda whole: tell(by, **about, result=done if whole else failed), begin=begin)


def tell(
    by: Person,
    *,
    key: str,
    file: str,
    bodies: bool,
    query: str,
    count: int | None = None,
    result: AuditResult = AuditResult.DONE,
) -> None:
    """In the audit, before anything is sent; once more where it was not sent to its end. `count`: how many
    letters it will be, where somebody counted."""
    record(
        EXPORT, by=by, now=timezone.now(), target=audit_target(key), setting_key=key,
        counts=None if count is None else {"letters": count}, result=result,
        detail={"file": file, "bodies": bodies, "query": query_for_all(query, key)},
    )  # fmt: skip
