"""Describes what is archived: each kind by the statement that reads it, and how a range of its receipt is
cut into blocks."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Min, QuerySet

from agents.models import Activation, BreakerTrip, Run
from console.database.statements import json_value, uuid_text
from dlq.models import DeadLetter, Outcome, ReplayItem
from dlq.models.replay import DELIVERING
from failures.models import FailureProtocol, RecoveredMessage


@dataclass(frozen=True, slots=True)
class ArchivedKind:
    """`rows`: those that belong to it sooner or later, `received`: the field by which. `statement()`: SQL
    that answers the columns of `pipeline.schemas`. Where rows may change after they were archived it has
    `{first}` and `{last}`, and also answers those that were touched in that range; else the range is asked of
    the column `received`."""

    name: str
    rows: Callable[[], QuerySet[Any]]
    received: str
    statement: Callable[[], str]

    @property
    def ranged(self) -> bool:
        return "{first}" not in self.statement()

    def within(self, first: datetime, last: datetime) -> QuerySet[Any]:
        return self.rows().filter(**{f"{self.received}__gte": first, f"{self.received}__lt": last}).order_by()

    def count(self, first: datetime, last: datetime) -> int:
        """Counts what the statement answers for a range."""
        if self.ranged:
            return self.within(first, last).count()
        parts = re.split(r"\{(first|last)\}", self.statement())
        ends = {"first": first, "last": last}
        parameters = [connection.ops.adapt_datetimefield_value(ends[name]) for name in parts[1::2]]
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM ({'%s'.join(parts[::2])}) counted", parameters)
            return int(cursor.fetchone()[0])

    def earliest(self, first: datetime | None = None, last: datetime | None = None) -> datetime | None:
        rows = self.rows() if first is None or last is None else self.within(first, last)
        found: datetime | None = rows.order_by().aggregate(first=Min(self.received))["first"]
        return found


def iso(at: datetime) -> str:
    """Returns it as plans and manifests write it: the order of these texts is the order in time."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


# Activations of which something came late: what is known of them and of their runs may have changed by it.
TOUCHED = """
    SELECT activation_uuid FROM failures_failureprotocol WHERE received_at >= {first} AND received_at < {last}
    UNION
    SELECT activation_uuid FROM failures_recoveredmessage WHERE received_at >= {first}
    AND received_at < {last}
"""


def protocols() -> str:
    return f"""
        SELECT {uuid_text("id")} AS id, {uuid_text("spool")} AS spool, number, setting_key,
               {uuid_text("activation_uuid")} AS activation, epoch, server_name AS server, agent,
               agent_version, outcome, exception_type, exception_text, traceback, fingerprint, place,
               temporary, counted, last_attempt, successes_before, message_key, message_key_weak, queue,
               destination, attempt, delivery_count, body_digest, body_size,
               CAST(properties AS text) AS properties, given_back, duration_seconds, memory_peak_bytes,
               clock_skew_seconds, traceparent, occurred_at, received_at, disposition, durable
        FROM failures_failureprotocol
    """


def recovered() -> str:
    return f"""
        SELECT {uuid_text("id")} AS id, setting_key, {uuid_text("activation_uuid")} AS activation, server_name
        AS server,
               message_key, attempt, occurred_at, received_at
        FROM failures_recoveredmessage
    """


def activations() -> str:
    return f"""
        SELECT {uuid_text("a.id")} AS id, s.key AS setting_key, a.state, a.trigger AS "trigger", a.well,
               CAST(a.reason AS text) AS reason,
               a.started_at, a.ended_at, {json_value("a.launched_with", "breaker_m", "integer")} AS breaker_m,
               lower({json_value("a.launched_with", "spread")}) AS mode, CAST(a.launched_with AS text)
               AS launched_with
        FROM agents_activation a JOIN agents_launchsetting s ON s.id = a.setting_id
        WHERE (a.ended_at >= {{first}} AND a.ended_at < {{last}})
           OR (a.ended_at < {{first}} AND a.id IN ({TOUCHED}))
    """


def runs() -> str:
    return f"""
        SELECT {uuid_text("r.activation_id")} AS activation, s.key AS setting_key, v.name AS server, r.epoch,
        r.state,
               r.handled, r.failed, r.temporary, r.recovered, r.restarts, r.created_at, r.closed_at
        FROM agents_run r JOIN agents_activation a ON a.id = r.activation_id
             JOIN agents_launchsetting s ON s.id = a.setting_id JOIN agents_server v ON v.id = r.server_id
        WHERE (r.closed_at >= {{first}} AND r.closed_at < {{last}})
           OR (r.closed_at < {{first}} AND r.activation_id IN ({TOUCHED}))
    """


def trips() -> str:
    """Again when a person has enabled the setting."""
    return f"""
        SELECT t.id, s.key AS setting_key, {uuid_text("t.activation_id")} AS activation,
               (SELECT v.name FROM agents_interruption i JOIN agents_server v ON v.id = i.server_id
                WHERE i.trip_id = t.id ORDER BY i.occurred_at, i.id LIMIT 1) AS server,
               t.reason, t.exception_type, t.at, t.ended_at AS enabled_again_at, t.reopened
        FROM agents_breakertrip t JOIN agents_launchsetting s ON s.id = t.setting_id
        WHERE (t.at >= {{first}} AND t.at < {{last}})
           OR (t.at < {{first}} AND t.ended_at >= {{first}} AND t.ended_at < {{last}})
    """


def letters() -> str:
    """Again when their messages failed once more: a protocol that came late says why they died."""
    kept = "CASE WHEN d.body_deleted_at IS NULL THEN c.body_text END"
    body = kept if settings.MA_ARCHIVE_BODIES else "CAST(NULL AS text)"
    return f"""
        SELECT d.id, d.queue, d.orig_message_id, d.setting_key, d.message_key, d.fingerprint,
        d.exception_type, d.place,
               d.server_name AS server, {uuid_text("d.activation_uuid")} AS activation, d.agent_version,
               d.size, CAST(c.properties AS text) AS properties, {body} AS body, d.delivery_count, d.chapter,
               d.protocol_at,
               d.seen_at
        FROM dlq_deadletter d LEFT JOIN dlq_lettercontent c ON c.letter_id = d.id
        WHERE (d.seen_at >= {{first}} AND d.seen_at < {{last}})
           OR (d.seen_at < {{first}} AND d.message_key <> '' AND d.message_key IN (
                SELECT message_key FROM failures_failureprotocol
                WHERE received_at >= {{first}} AND received_at < {{last}}
              ))
    """


def replays() -> str:
    """When it happened is the word of a KMA: what was reported in the range belongs to it too, however long
    ago it was."""
    delivering = ", ".join(f"'{action}'" for action in DELIVERING)
    return f"""
        SELECT i.id, {uuid_text("i.job_id")} AS job, j.action, i.letter_id AS letter, d.setting_key,
               j.target_key, d.message_key, d.fingerprint, d.exception_type, d.seen_at AS died_at,
               COALESCE(p.moved_at, p.planned_at) AS given_back_at, i.outcome, i.outcome_at
        FROM dlq_replayitem i JOIN dlq_replayjob j ON j.id = i.job_id
        JOIN dlq_deadletter d ON d.id = i.letter_id
             LEFT JOIN dlq_replayslice p ON p.id = i.slice_id
        WHERE i.outcome NOT IN ('', '{Outcome.UNKNOWN.value}') AND j.action IN ({delivering}) AND (
            (i.outcome_at >= {{first}} AND i.outcome_at < {{last}})
            OR (i.outcome_at < {{first}} AND d.message_key IN (
                SELECT message_key FROM dlq_letterreport WHERE received_at >= {{first}}
                AND received_at < {{last}}
            ))
        )
    """


def _settled_outcomes() -> QuerySet[ReplayItem]:
    return ReplayItem.objects.exclude(outcome__in=(Outcome.WAITING, Outcome.UNKNOWN)).filter(
        job__action__in=DELIVERING
    )


KINDS = {
    kind.name: kind
    for kind in (
        ArchivedKind("protocols", FailureProtocol.objects.all, "received_at", protocols),
        ArchivedKind("recovered", RecoveredMessage.objects.all, "received_at", recovered),
        ArchivedKind("activations", Activation.objects.all, "ended_at", activations),
        ArchivedKind("runs", Run.objects.all, "closed_at", runs),
        ArchivedKind("trips", BreakerTrip.objects.all, "at", trips),
        ArchivedKind("letters", DeadLetter.objects.all, "seen_at", letters),
        ArchivedKind("replays", _settled_outcomes, "outcome_at", replays),
    )
}


# -- a range of receipt, cut into blocks ---------------------------------------------------------------------
# Each within one day, of about as many rows, at instants where rows meet.


BLOCK_ROWS = 250_000
# Parts of a block that are read beside each other.
PARTS = 4


@dataclass(frozen=True, slots=True)
class Cut:
    """`empty`: there is nothing in it, however many days it has."""

    first: datetime
    last: datetime
    splits: Sequence[datetime] = field(default=())
    empty: bool = False


def cut(kind: ArchivedKind, first: datetime, last: datetime, *, rows: int = BLOCK_ROWS) -> Iterator[Cut]:
    """Cuts from `first` on without a gap. What is empty at the end is left for the next time, unless its day
    is over."""
    at = first
    while at < last:
        following = kind.earliest(at, last)
        full = last if following is None else max(at, day_of(following))
        if at < full and _is_empty(kind, at, full):
            if following is None:
                full = max(at, day_of(last))  # the day that goes on is looked at again
            if at < full:
                yield Cut(at, full, empty=True)
            if following is None:
                return
            at = full
            continue
        until = min(last, day_of(at) + timedelta(days=1))
        if kind.count(at, until) or until < last:
            yield from _of_day(kind, at, until, rows)
        elif until == day_of(until):
            yield Cut(at, until, empty=True)
        at = until


def day_of(at: datetime) -> datetime:
    return datetime.combine(at.astimezone(UTC).date(), time(), UTC)


def _is_empty(kind: ArchivedKind, first: datetime, last: datetime) -> bool:
    """Says so; where rows of a kind are touched later, nothing received does not mean that there is
    nothing."""
    return kind.ranged or not kind.count(first, last)


def _of_day(kind: ArchivedKind, first: datetime, last: datetime, rows: int) -> Iterator[Cut]:
    if not kind.ranged:
        yield Cut(first, last)
        return
    edges = list(_edges(kind, first, last, max(1, rows // PARTS)))
    for start in range(0, len(edges) - 1, PARTS):
        some = edges[start : start + PARTS + 1]
        yield Cut(some[0], some[-1], some[1:-1])


def _edges(kind: ArchivedKind, first: datetime, last: datetime, rows: int) -> Iterator[datetime]:
    """Instants between which there are about so many rows; all of one instant are together."""
    yield first
    at = first
    while True:
        following = kind.within(at, last).order_by(kind.received).values_list(kind.received, flat=True)
        edge = next(iter(following[rows : rows + 1]), None)
        if edge is not None and edge == at:
            edge = kind.earliest(at + timedelta(microseconds=1), last)
        if edge is None:
            break
        yield edge
        at = edge
    yield last
