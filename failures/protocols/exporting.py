"""Protocols as a file, newest first: what a filter finds, in pieces. However many there are, memory holds one
piece, and no statement and no transaction is longer than one piece takes.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import structlog
from django.utils import timezone
from django.utils.translation import gettext as _

from console.audit.log import attempt, record
from console.audit.models import AuditResult
from console.exports import Row, Stream, begin_of, cell, csv_line, json_line
from console.lists.keyset import pieces
from console.operations.refusals import Refused, WronglyAsked
from console.ui.amounts import number
from failures.models import FailureProtocol
from failures.protocols.filter import ProtocolFilter, Query
from failures.protocols.search import count, older_than

log = structlog.get_logger(__name__)
EXPORT = "protocols.export"

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
UNTOLD = ("message_key", "text", "prop", "value")


def stream_of(filters: ProtocolFilter, form: str, by: Any) -> Stream:
    """Raises Refused."""
    if problem := filters.problem:
        text = _("Nothing was selected: the filter is invalid. Correct the filter and try again.")
        raise WronglyAsked("bad_filter", f"{text} {problem}")
    key = filters.form.cleaned_data.get("setting") or ""
    facts = {"file": form, "setting": key, "query": _redacted_query(filters)}
    with attempt(EXPORT, by=by, target=_target_of(key), setting_key=key):
        counted = count(filters.asked, most=MOST)
        if counted.count >= MOST and counted.more:
            raise Refused("too_many", _too_many())
        if not counted.more:
            facts["count"] = counted.count
        return Stream(
            export_lines(filters.asked, form),
            on_end=lambda whole: _keep(by, facts, whole),
            begin=begin_of(form),
        )


def _too_many() -> str:
    return _("Export refused: more than %(n)s failures match. Narrow the filter, for example by time.") % {
        "n": number(MOST)
    }


def _redacted_query(filters: ProtocolFilter) -> str:
    query = filters.part_of(filters.data)
    for name in UNTOLD:
        if query.get(name):
            query[name] = "•••"
    return str(query.urlencode(safe="•"))


def _target_of(key: str) -> str:
    return f"setting:{key}" if key else "protocols:all"


def _keep(by: Any, facts: Mapping[str, Any], whole: bool) -> None:
    """In the audit before anything is sent; once more where it was not sent to its end."""
    log.info("protocols exported" if whole else "export of protocols interrupted", by=str(by), **facts)
    key = str(facts["setting"])
    record(
        EXPORT,
        by=by,
        now=timezone.now(),
        target=_target_of(key),
        setting_key=key,
        counts={"protocols": facts["count"]} if "count" in facts else None,
        result=AuditResult.DONE if whole else AuditResult.FAILED,
        detail={"file": facts["file"], "query": facts["query"]},
    )


def export_lines(asked: Query, form: str) -> Iterator[str]:
    """The file in pieces, each ends with its line end; of CSV the first names the columns."""
    if form != "csv":
        yield from map(json_line, _rows(asked, WHOLE))
        return
    yield csv_line(HEAD)
    for row in _rows(asked, HEAD):
        yield csv_line([cell(_flat(value)) for value in row.values()])


def _flat(value: Any) -> Any:
    return value if isinstance(value, (str, bool, int, float)) or hasattr(value, "tzinfo") else str(value)


def _rows(asked: Query, columns: Iterable[str]) -> Iterator[Row]:
    """What was deleted meanwhile is not among them. Raises OverflowError past MOST."""
    names, sent = list(columns), 0
    for places in pieces(partial(older_than, asked), PIECE):
        keys = [place.key for place in places]
        rows = {
            row["id"]: row for row in FailureProtocol.objects.filter(pk__in=keys).order_by().values(*names)
        }
        for key in keys:
            if key in rows:
                sent += 1
                if sent > MOST:
                    raise OverflowError("too many protocols for one file: the export is incomplete")
                yield rows[key]
