"""Personal data out of what failures left: of messages with a key, or with a property of a value.

A protocol stays, as evidence that something failed: its text, traceback, properties, digest of the body and
trace are gone, and its message key is another one, the same for all that is known of the message. So counts,
retention and the high-water marks stay true, and what failed and recovered is still one message. What cannot
be found by itself goes first (`retention.erasure.operations` has the order): whoever is killed leaves
something by which the next one finds the rest.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.crypto import salted_hmac

from failures.models import (
    FailureDelta,
    FailureGroup,
    FailureProtocol,
    Fingerprint,
    RecordConflict,
    RecoveredMessage,
    RefusedRecord,
)
from failures.models.protocol import ERASED

# Of what stands for keys that are erased, in the database and in the archive: never another one.
ERASURE_SALT = "failures.erasing"
# (setting key, message key)
Case = tuple[str, str]

# Rows of one transaction, and rows that a walk reads at a time.
PIECE, WALKED = 500, 2000
GONE = {"exception_text": "", "traceback": "", "properties": {}, "body_digest": "", "traceparent": ""}


@dataclass(frozen=True, slots=True)
class ErasureTarget:
    """Messages with this key, or else with a property `name` = `value`; `setting`: of this one only."""

    message_key: str = ""
    name: str = ""
    value: str = ""
    setting: str = ""

    @property
    def secret(self) -> str:
        """Returns what must be nowhere afterwards."""
        return self.message_key or self.value

    @property
    def digest(self) -> str:
        """Returns it for the audit: whoever knows the value can see that it was this one, nobody else what it
        was."""
        return digest_of(self.secret)

    def has(self, properties: Any) -> bool:
        """Returns whether these properties of a message, {name: value}, have the wanted one."""
        return (
            isinstance(properties, Mapping)
            and self.name in properties
            and value_text(properties[self.name]) == self.value
        )


def digest_of(text: str) -> str:
    return salted_hmac(ERASURE_SALT, text, algorithm="sha256").hexdigest()[:24]


def substitute(message_key: str) -> str:
    """Returns what stands for a message key that is erased: the same for the same key; nothing tells the key
    from it."""
    return f"{ERASED}{digest_of(message_key)}"


def value_text(value: Any) -> str:
    """A value of a property as people write it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class ArchiveNotErased(Exception):
    """It could not be taken out of an archive, or not out of all of it: run it again. The text says why;
    `counts`: what was taken out nevertheless."""

    def __init__(self, text: str, counts: Mapping[str, int] | None = None) -> None:
        super().__init__(text)
        self.counts: Mapping[str, int] = counts or {}


# -- finding -------------------------------------------------------------------------------------------------


def cases_by_property(wanted: ErasureTarget, seen: Callable[[int], object]) -> Iterator[set[Case]]:
    """The cases of protocols that have it, piece by piece of the whole table; `seen(n)` after so many more
    rows."""
    last: UUID | None = None
    while True:
        rows = FailureProtocol.objects.order_by("pk").exclude(message_key="")
        rows = rows if last is None else rows.filter(pk__gt=last)
        piece = list(rows.values_list("pk", "setting_key", "message_key", "properties")[:WALKED])
        if not piece:
            return
        last = piece[-1][0]
        found = {(setting, key) for _, setting, key, properties in piece if wanted.has(properties)}
        seen(len(piece))
        yield {case for case in found if wanted.setting in ("", case[0])}


def settings_of_message(message_key: str) -> set[str]:
    """Returns the settings of which something is known of a message."""
    known: set[str] = set()
    for model in (FailureProtocol, RecoveredMessage):
        rows: QuerySet[Any] = model._default_manager.filter(message_key=message_key).order_by()
        known.update(rows.values_list("setting_key", flat=True).distinct())
    return known


def of_cases(rows: QuerySet[Any], cases: Collection[Case]) -> QuerySet[Any]:
    """Finds rows with `setting_key` and `message_key`, by the index of both."""
    where = Q(pk__in=[])
    for setting, key in cases:
        where |= Q(message_key=key, setting_key=setting)
    return rows.filter(where).order_by()


def erase_recovered(cases: Collection[Case], *, dry: bool) -> int:
    return rekey(RecoveredMessage.objects.all(), cases, dry=dry)


def rekey(rows: QuerySet[Any], cases: Collection[Case], *, dry: bool, **more: Any) -> int:
    """Gives rows of these cases the other key, and `more`; how many. In pieces, each a transaction."""
    if dry:
        return of_cases(rows, cases).count()
    changed = 0
    for setting, key in cases:
        mine = rows.filter(setting_key=setting, message_key=key).order_by()
        while numbers := list(mine.values_list("pk", flat=True)[:PIECE]):
            values = {"message_key": substitute(key), **more}
            done = rows.model._default_manager.filter(pk__in=numbers, message_key=key).update(**values)
            if not done:
                break
            changed += done
    return changed


def erase_protocols(cases: Collection[Case], secret: str, *, dry: bool) -> Mapping[str, int]:
    """The headlines of their groups first: what is found by the protocols."""
    protocols = FailureProtocol.objects.all()
    if dry:
        return {"protocols": of_cases(protocols, cases).count()}
    kinds = set(of_cases(protocols, cases).values_list("fingerprint", flat=True).distinct())
    return {
        "headlines": _erase_headlines(kinds, secret),
        "protocols": rekey(protocols, cases, dry=False, **GONE),
    }


def _erase_headlines(fingerprints: Collection[str], secret: str) -> int:
    """A headline has no numbers and no quoted values, but it may have a name."""
    parts = Fingerprint.objects.filter(part_of__in=fingerprints).values_list("pk", flat=True)
    kinds, changed = [*fingerprints, *parts], 0
    for model in (FailureDelta, FailureGroup, Fingerprint):
        for start in range(0, len(kinds), PIECE):
            rows: QuerySet[Any] = model._default_manager.filter(fingerprint__in=kinds[start : start + PIECE])
            changed += rows.filter(headline__contains=secret).update(headline="")
    return changed


def erase_records(wanted: ErasureTarget, *, dry: bool) -> Mapping[str, int]:
    """Records that were refused, or came with other content: their texts, looked through one after the
    other."""
    return {
        "refused records": _erase_texts(RefusedRecord, wanted, {"content": "", "reason": "erased"}, dry=dry),
        "conflicts": _erase_texts(RecordConflict, wanted, {"content": ""}, dry=dry),
    }


def _erase_texts(model: Any, wanted: ErasureTarget, values: Mapping[str, str], *, dry: bool) -> int:
    last, found = 0, 0
    while True:
        rows = model._default_manager.filter(pk__gt=last).order_by("pk").values_list("pk", "content")[:PIECE]
        piece = list(rows)
        if not piece:
            return found
        last = piece[-1][0]
        numbers = [number for number, content in piece if content and in_record(content, wanted)]
        found += len(numbers)
        if numbers and not dry:
            with transaction.atomic():
                model._default_manager.filter(pk__in=numbers).update(**values)


def in_record(content: str, wanted: ErasureTarget) -> bool:
    """Returns whether the text of a record speaks of it; one that is cut off is searched as it is, rather too
    much than too little."""
    try:
        record = json.loads(content)
    except ValueError:
        return _written(wanted.secret) in content and (
            not wanted.name or json.dumps(wanted.name, ensure_ascii=False) in content
        )
    if not isinstance(record, dict):
        return _written(wanted.secret) in content
    if wanted.setting and _part(record, "run").get("setting") != wanted.setting:
        return False
    message = _part(record, "message")
    if wanted.message_key:
        return bool(message.get("key") == wanted.message_key)
    return wanted.has(message.get("properties"))


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = record.get(name)
    return part if isinstance(part, dict) else {}


def _written(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
