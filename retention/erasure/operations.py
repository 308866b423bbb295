"""Erasing, from the first look to the audit.

Of each few cases what is found by its key alone goes first (what was written about it, its reports, what
recovered), then the letters, which are found by their own properties: marked gone, removed at the broker, and
only then forgotten. The protocols are last. Whoever is killed in between leaves the key, or a row with the
property: the next run finds it and goes on; one that has nothing left to find erases nothing. What comes in
later, from a spool of a KMA for example, needs another run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from console.audit.log import record
from console.audit.models import AuditResult
from console.database.storage import checkpoint, overwrite_deleted
from console.jobs import crash
from dlq.index.broker import LetterQueues
from dlq.models import DeadLetter
from dlq.search.words import INDEX
from retention.erasure import archive, dead_letters, protocols
from retention.erasure.protocols import Case, ErasureTarget

ACTION = "erase"
# Of nobody by a pool: what is erased may be of every setting.
ERASE = "retention.erase_personal"
# Cases that are erased together.
TOGETHER = 50


@dataclass(slots=True)
class Erased:
    """`counts` by kind. `left`: what could not be erased, and why; then it has to be done again."""

    counts: Counter[str] = field(default_factory=Counter)
    left: set[str] = field(default_factory=set)


def would_erase(wanted: ErasureTarget, now: datetime, seen: Callable[[int], object]) -> Erased:
    """Returns how much there is. Nothing is changed, and the broker is not asked."""
    erased = Erased()
    for cases in _together(_each_once(_cases(wanted, seen))):
        _erase_cases(cases, wanted, None, now, erased)
    _erase_rest(wanted, erased, dry=True)
    return erased


def erase(
    wanted: ErasureTarget, queues: LetterQueues, *, by: Any, reason: str, operation: UUID, now: datetime,
    seen: Callable[[int], object],
) -> Erased:  # fmt: skip
    """Raises BrokerError: what was erased is; run it again. The audit knows of the beginning and of the
    end."""
    erased = Erased()
    if not queues.feed_is_empty():
        erased.left.add(_("some messages were dead-lettered just now and are not in the index yet"))
    _tell("erase_begun", wanted, erased, by=by, reason=reason, operation=operation, now=now)
    overwrite_deleted()
    archive.remember_for_archive(wanted, [])
    for cases in _together(_cases(wanted, seen)):
        archive.remember_for_archive(wanted, cases)
        _erase_cases(cases, wanted, queues, now, erased)
    _erase_rest(wanted, erased, dry=False)
    INDEX.merge()
    checkpoint(emptied=True)
    _tell(ACTION, wanted, erased, by=by, reason=reason, operation=operation, now=now)
    return erased


def _erase_cases(
    cases: list[Case], wanted: ErasureTarget, queues: LetterQueues | None, now: datetime, erased: Erased
) -> None:
    dry = queues is None
    erased.counts.update(dead_letters.erase_annotations(cases, now, dry=dry))
    erased.counts["recovered"] += protocols.erase_recovered(cases, dry=dry)
    counts, left = dead_letters.erase_letters(queues, cases, now)
    erased.counts.update(counts)
    erased.left |= left
    crash.point("erase: letters done")
    erased.counts.update(protocols.erase_protocols(cases, wanted.secret, dry=dry))


def _erase_rest(wanted: ErasureTarget, erased: Erased, *, dry: bool) -> None:
    erased.counts.update(protocols.erase_records(wanted, dry=dry))
    erased.counts.update(dead_letters.erase_queries(wanted, dry=dry))
    try:
        erased.counts.update(archive.erase_in_archive(wanted, dry))
    except protocols.ArchiveNotErased as error:
        erased.counts.update(error.counts)
        erased.left.add(str(error))


def _cases(wanted: ErasureTarget, seen: Callable[[int], object]) -> Iterator[Case]:
    if wanted.message_key:
        known = protocols.settings_of_message(wanted.message_key) | dead_letters.settings_of_letters(
            wanted.message_key
        )
        rows = DeadLetter.objects.filter(message_key=wanted.message_key).order_by()
        known.update(rows.values_list("setting_key", flat=True).distinct())
        yield from ((key, wanted.message_key) for key in sorted(known) if wanted.setting in ("", key))
        return
    for walk in (dead_letters.letter_cases_by_property, protocols.cases_by_property):
        for cases in walk(wanted, seen):
            yield from sorted(cases)


def _each_once(cases: Iterable[Case]) -> Iterator[Case]:
    """While nothing is erased, a case is found by each of its rows."""
    known: set[Case] = set()
    for case in cases:
        if case not in known:
            known.add(case)
            yield case


def _together(cases: Iterator[Case]) -> Iterator[list[Case]]:
    while some := list(islice(cases, TOGETHER)):
        yield list(dict.fromkeys(some))


def _tell(
    action: str,
    wanted: ErasureTarget,
    erased: Erased,
    *,
    by: Any,
    reason: str,
    operation: UUID,
    now: datetime,
) -> None:
    """Never the value itself: whoever knows it can compare its digest."""
    detail: dict[str, Any] = {"kind": "property" if wanted.name else "message_key", "digest": wanted.digest}
    if wanted.name:
        detail["name"] = wanted.name
    if erased.left:
        detail["why"] = "; ".join(sorted(erased.left))
    record(
        action, by=by, now=now, target=f"erased:{wanted.digest}", operation=operation,
        setting_key=wanted.setting,
        reason=reason, counts={kind: number for kind, number in sorted(erased.counts.items()) if number},
        result=AuditResult.FAILED if erased.left else AuditResult.DONE, detail=detail,
    )  # fmt: skip
