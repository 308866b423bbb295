"""Dead letters and what became of those that were given back, for the archive."""

from django.conf import settings
from django.db.models import QuerySet

from dlq.models import DeadLetter, Outcome, ReplayItem
from dlq.models.replay import DELIVERING
from failures.archive.kinds import ArchivedKind, json, register, uuid


def letters() -> str:
    """Again when their messages failed once more: a protocol that came late says why they died."""
    kept = "CASE WHEN d.body_deleted_at IS NULL THEN c.body_text END"
    body = kept if settings.MA_ARCHIVE_BODIES else "CAST(NULL AS text)"
    return f"""
        SELECT d.id, d.queue, d.orig_message_id, d.setting_key, d.message_key, d.fingerprint,
        d.exception_type, d.place,
               d.server_name AS server, {uuid("d.activation_uuid")} AS activation, d.agent_version, d.size,
               {json("c.properties")} AS properties, {body} AS body, d.delivery_count, d.chapter,
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
        SELECT i.id, {uuid("i.job_id")} AS job, j.action, i.letter_id AS letter, d.setting_key, j.target_key,
               d.message_key, d.fingerprint, d.exception_type, d.seen_at AS died_at,
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


def _outcomes() -> QuerySet[ReplayItem]:
    return ReplayItem.objects.exclude(outcome__in=(Outcome.WAITING, Outcome.UNKNOWN)).filter(
        job__action__in=DELIVERING
    )


def register_kinds() -> None:
    register(ArchivedKind("letters", DeadLetter.objects.all, "seen_at", letters))
    register(ArchivedKind("replays", _outcomes, "outcome_at", replays))
