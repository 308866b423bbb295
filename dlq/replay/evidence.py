"""What is unconfirmed, looked for where our move would have brought it: in the subscription, or in another
dead-letter queue. A letter that lies there went; of one that does not lie there nothing is known.

It only reads the broker. Killed at any point, nothing is lost: the reports of KMAs tell later.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from broker.amqp_peek import peek
from broker.errors import BrokerError, MessageUndecodable
from contract.properties import ANNOTATED_ORIG_QUEUE, ORIG_QUEUE
from dlq import crash
from dlq.letter_queues import LetterQueues
from dlq.models import Action, DeadLetter, ItemState, ReplayItem, ReplayJob
from dlq.models.replay import DELIVERING
from dlq.reading import letter_row
from dlq.replay import joining
from dlq.replay.joining import Case
from dlq.replay.leases import walking
from dlq.replay.outcomes import Report
from dlq.replay.pace import target_of
from dlq.replay.routes import TO_A_SUBSCRIPTION

# A subscription that holds more is not read: what comes out of it is reported.
MOST_READ = 20_000
AT_ONCE = 1000


def look_in_target(job: ReplayJob, queues: LetterQueues) -> None:
    """Confirms what lies there. Call it after the walk that indexes another dead-letter queue. Raises
    BrokerError."""
    items = ReplayItem.objects.filter(job=job, state=ItemState.UNCONFIRMED)
    cases = sorted(joining.cases_of(list(items.values_list("pk", flat=True))))
    if not cases:
        return
    crash.point("looking")
    if job.action in TO_A_SUBSCRIPTION:
        _confirm(cases, _in_subscription(job, queues), DELIVERING)
    elif job.action in (Action.DISCARD, Action.PUT_BACK):
        for start in range(0, len(cases), AT_ONCE):
            some = cases[start : start + AT_ONCE]
            _confirm(some, _in_dead_letter_queue(job, some), (job.action,))


def _confirm(cases: Sequence[Case], seen: dict[Case, list[Report]], actions: Sequence[str]) -> None:
    found = sorted(case for case in cases if case in seen)
    for start in range(0, len(found), AT_ONCE):
        with transaction.atomic():
            joining.settle(set(found[start : start + AT_ONCE]), timezone.now(), seen=seen, actions=actions)
            crash.point("confirming")


def _in_subscription(job: ReplayJob, queues: LetterQueues) -> dict[Case, list[Report]]:
    """Messages there that say which letter they were."""
    seen: dict[Case, list[Report]] = defaultdict(list)
    now = timezone.now()
    for encoded in _waiting(job, queues):
        row = letter_row(encoded, "", now)
        if row.message_key:
            seen[job.target_key or job.setting_key, row.message_key].append(_report(row.orig_message_id, now))
    return seen


def _waiting(job: ReplayJob, queues: LetterQueues) -> Iterator[bytes]:
    """Messages of the subscription that came from the queue of the job."""
    setting = target_of(job)
    if setting is None or setting.destination is None:
        return
    try:
        if queues.figures(job.target_queue).count > MOST_READ:
            return
        with walking(job, job.target_queue) as renew:
            seen = 0
            for piece in queues.browser.walk(setting.destination.name, job.target_queue):
                yield from (encoded for encoded in piece if _came_from(encoded) == job.source_queue)
                seen += len(piece)
                renew(seen)
    except BrokerError:
        # It is a help, no more: the job ends without it.
        return


def _came_from(encoded: bytes) -> object:
    try:
        found = peek(encoded, (ORIG_QUEUE,), (ANNOTATED_ORIG_QUEUE,))
    except MessageUndecodable:
        return None
    return found.get(ORIG_QUEUE, found.get(ANNOTATED_ORIG_QUEUE))


def _in_dead_letter_queue(job: ReplayJob, cases: Sequence[Case]) -> dict[Case, list[Report]]:
    """Rows of letters that came there from the queue of the job."""
    rows = DeadLetter.objects.filter(
        queue=job.target_queue, orig_queue=job.source_queue, message_key__in={key for _, key in cases}
    )
    seen: dict[Case, list[Report]] = defaultdict(list)
    for row in rows.only("setting_key", "message_key", "orig_message_id", "seen_at"):
        seen[row.setting_key, row.message_key].append(_report(row.orig_message_id, row.seen_at))
    return seen


def _report(letter_id: int, at: datetime) -> Report:
    return Report(letter_id, None, at)
