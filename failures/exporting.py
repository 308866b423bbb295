"""Protocols as a file, newest first: what a filter finds, in pieces. However many there are, memory holds one
piece, and no statement and no transaction is longer than one piece takes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import structlog
from django.utils import timezone
from django.utils.translation import gettext as _

from console.audit.log import record
from console.audit.models import AuditResult
from console.exports.rows import Row, cell, csv_line, json_line
from console.exports.stream import AllPlacesTaken, Stream, begin_of
from console.ui.amounts import number
from failures.finding.asked import Asked
from failures.finding.cursors import Place
from failures.finding.filters import ProtocolFilter, filter_part
from failures.finding.search import count, older_than
from failures.models import FailureProtocol

log = structlog.get_logger(__name__)

# Protocols of one file over the web.
MOST = 100_000
PIECE = 500
HEAD = (
    "id", "occurred_at", "received_at", "setting_key", "server_name", "activation_uuid", "epoch", "agent",
    "agent_version", "outcome", "exception_type", "exception_text", "fingerprint", "place", "temporary",
    "counted",
    "last_attempt", "successes_before", "message_key", "message_key_weak", "queue", "destination", "attempt",
    "delivery_count", "body_digest", "body_size", "given_back", "process_id", "duration_seconds",
    "memory_peak_bytes", "clock_skew_seconds", "traceparent", "disposition",
    "durable", "verified",
)  # fmt: skip
# Long: of JSON lines only.
WHOLE = (*HEAD, "traceback", "properties")
# Parts of a filter whose values are not told to who reads the audit: they may be personal.
UNTOLD = ("message_key", "text")


class NotExported(Exception):
    """For people; nothing was sent. `code` is a stable word: `bad_filter`, `too_many`, `busy`."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


def stream_of(filters: ProtocolFilter, form: str, by: Any) -> Stream:
    """Raises NotExported."""
    if problem := filters.problem:
        text = _("That filter is not understood; nothing was chosen by it.")
        raise NotExported("bad_filter", f"{text} {problem}")
    counted = count(filters.asked, most=MOST)
    if counted.count >= MOST and counted.more:
        raise NotExported("too_many", _too_many())
    facts = {
        "file": form,
        "setting": filters.form.cleaned_data.get("setting") or "",
        "query": _told_query(filters),
    }
    if not counted.more:
        facts["count"] = counted.count
    try:
        return Stream(
            lines(filters.asked, form), told=lambda whole: _keep(by, facts, whole), begin=begin_of(form)
        )
    except AllPlacesTaken as error:
        raise NotExported("busy", _("Other exports are running: try again when they are done.")) from error


def _too_many() -> str:
    return _("More than %(n)s protocols: narrow the filter, by a time for example.") % {"n": number(MOST)}


def _told_query(filters: ProtocolFilter) -> str:
    query = filter_part(filters.data)
    for name in UNTOLD:
        if query.get(name):
            query[name] = "•••"
    return str(query.urlencode(safe="•"))


def _keep(by: Any, facts: Mapping[str, Any], whole: bool) -> None:
    """In the audit before anything is sent; once more where it was not sent to its end."""
    log.info("protocols exported" if whole else "export of protocols broke off", by=str(by), **facts)
    key = str(facts["setting"])
    record(
        "export_protocols", by=by, now=timezone.now(), target=f"setting:{key}" if key else "protocols:all",
        setting_key=key, counts={"protocols": facts["count"]} if "count" in facts else None,
        result=AuditResult.DONE if whole else AuditResult.FAILED,
        detail={"file": facts["file"], "query": facts["query"]},
    )  # fmt: skip


def lines(asked: Asked, form: str) -> Iterator[str]:
    """The file in pieces, each ends with its line end; of CSV the first names the columns."""
    if form != "csv":
        yield from map(json_line, _rows(asked, WHOLE))
        return
    yield csv_line(HEAD)
    for row in _rows(asked, HEAD):
        yield csv_line([cell(_flat(value)) for value in row.values()])


def _flat(value: Any) -> Any:
    return value if isinstance(value, (str, bool, int, float)) or hasattr(value, "tzinfo") else str(value)


def _rows(asked: Asked, columns: Iterable[str]) -> Iterator[Row]:
    """What was deleted meanwhile is not among them. Raises OverflowError past MOST."""
    before: Place | None = None
    names, sent = list(columns), 0
    while True:
        found = older_than(asked, before, PIECE)
        keys = [place.key for place in found.places]
        rows = {
            row["id"]: row for row in FailureProtocol.objects.filter(pk__in=keys).order_by().values(*names)
        }
        for key in keys:
            if key in rows:
                sent += 1
                if sent > MOST:
                    raise OverflowError("more protocols than a file may have: it is not whole")
                yield rows[key]
        if found.stopped_at is not None:
            before = found.stopped_at
        elif len(keys) < PIECE:
            return
        else:
            before = found.places[-1]
