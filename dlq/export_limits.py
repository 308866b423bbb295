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
from console.exports.stream import AllPlacesTaken, Stream
from console.ui.amounts import number
from dlq.finding.told import query_for_all
from dlq.models import DeadLetter

# Letters of one file: heads of bodies, or whole letters of up to 1 MB.
MOST, MOST_WHOLE = 100_000, 10_000


class NotExported(Exception):
    """For people; nothing was sent. `code` is a stable word."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


def most(*, bodies: bool) -> int:
    return MOST_WHOLE if bodies else MOST


def checked_count(letters: QuerySet[DeadLetter], *, bodies: bool) -> int:
    """How many there are. Raises NotExported."""
    limit = most(bodies=bodies)
    with quick():
        count = letters.order_by()[: limit + 1].count()
    if count > limit:
        text = _(
            "More than %(n)s letters: narrow the filter, or let the command line write the file: %(command)s"
        )
        raise NotExported("too_many", text % {"n": number(limit), "command": "./ma manage dlq export"})
    return count


def stream_of(texts: Iterable[str], *, by: Person, about: dict[str, Any], begin: str = "") -> Stream:
    """Told in the audit. Raises NotExported where all places are taken."""
    done, failed = AuditResult.DONE, AuditResult.FAILED
    try:
        return Stream(
            texts, told=lambda whole: tell(by, **about, result=done if whole else failed), begin=begin
        )
    except AllPlacesTaken as error:
        raise NotExported("busy", _("Other exports are running: try again when they are done.")) from error


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
        "export", by=by, now=timezone.now(), target=f"setting:{key}" if key else "letters:all",
        setting_key=key,
        counts=None if count is None else {"letters": count}, result=result,
        detail={"file": file, "bodies": bodies, "query": query_for_all(query, key)},
    )  # fmt: skip
