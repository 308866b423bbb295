"""What an export over the web is allowed to take: letters, time, threads. The command line has none of these limits."""

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.pages.amounts import number
from agents.pages.quick import quick
from dlq.auditing import Person, record
from dlq.finding.told import query_for_all
from dlq.models import AuditResult, DeadLetter

# Letters of one file: heads of bodies, or whole letters of up to 1 MB.
MOST, MOST_WHOLE = 100_000, 10_000
# Seconds that a file may take; a reader that is slower gets a broken one.
LONGEST = 600.0
# Files that a process makes at once: the other threads answer pages.
AT_ONCE = 2
# Texts that are sent together.
JOINED = 64 * 1024

_running = threading.BoundedSemaphore(AT_ONCE)


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
        text = _("More than %(n)s letters: narrow the filter, or let the command line write the file: %(command)s")
        raise NotExported("too_many", text % {"n": number(limit), "command": "./ma manage dlq export"})
    return count


class Stream:
    """The file in pieces. Whoever asked for it holds one of few places until the last piece, or until it is closed.

    One that breaks off is told in the audit, and looks broken to its reader: it must not be taken for a whole one."""

    def __init__(self, texts: Iterable[str], *, by: Person, about: dict[str, Any], begin: str = "") -> None:
        """Raises NotExported where all places are taken."""
        if not _running.acquire(blocking=False):
            raise NotExported("busy", _("Other exports are running: try again when they are done."))
        self._by, self._about, self._held, self._whole = by, about, True, False
        self._pieces = self._joined(texts, begin)
        tell(by, **about)

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def _joined(self, texts: Iterable[str], begin: str) -> Iterator[bytes]:
        end = time.monotonic() + LONGEST
        held, size = [begin], len(begin)
        for text in texts:
            held.append(text)
            size += len(text)
            if size >= JOINED:
                if time.monotonic() > end:
                    raise TimeoutError("an export took too long: it is not whole")
                yield "".join(held).encode()
                held, size = [], 0
        yield "".join(held).encode()
        self._whole = True

    def close(self) -> None:
        if not self._held:
            return
        self._held = False
        _running.release()
        if not self._whole:
            tell(self._by, **self._about, result=AuditResult.FAILED)


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
    """In the audit, before anything is sent; once more where it was not sent to its end. `count`: how many letters it
    will be, where somebody counted."""
    record(
        "export", by=by, now=timezone.now(), target=f"setting:{key}" if key else "letters:all", setting_key=key,
        counts=None if count is None else {"letters": count}, result=result,
        detail={"file": file, "bodies": bodies, "query": query_for_all(query, key)},
    )  # fmt: skip
