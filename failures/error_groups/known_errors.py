"""The book of known errors: written by people, shown wherever the fingerprint appears again."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.utils.translation import gettext as _

from contract.typed import storable
from failures.error_groups.merges import heads_of, members_of, never_met, note_act, refused
from failures.error_groups.regressions import refresh_return
from failures.error_groups.rollup import hold
from failures.models import Fingerprint, FingerprintAct, KnownError


@dataclass(frozen=True, slots=True)
class KnownErrorFields:
    """Holds what a person may say of a fingerprint."""

    cause: str = ""
    runbook_url: str = ""
    owner: str = ""
    ticket: str = ""
    advice: str = ""


SAID = tuple(each.name for each in fields(KnownErrorFields))


def write(fingerprint: str, known: KnownErrorFields, *, by: Any, now: datetime) -> list[str]:
    """Writes the entry of the one that `fingerprint` belongs to; returns the names of what changed. Raises
    Refused."""
    said = _checked(known)
    with transaction.atomic():
        hold()  # the whole row is written back: a fold between would lose what it found
        entry = _entry(fingerprint)
        changed = {
            name: [getattr(entry, name), value]
            for name, value in said.items()
            if getattr(entry, name) != value
        }
        if changed:
            _change(entry, said, FingerprintAct.WROTE, changed, by, now)
    return list(changed)


def fixed(fingerprint: str, version: str, *, by: Any, now: datetime) -> KnownError:
    """Marks that from `now` on it should not come again; `version`: of the agent that fixes it, may be
    empty."""
    with transaction.atomic():
        hold()
        entry = _entry(fingerprint)
        fields = {"fixed_at": now, "fixed_in": _line(version)}
        _change(entry, fields, FingerprintAct.FIXED, {"version": fields["fixed_in"]}, by, now)
        refresh_return(entry.pk, members_of(entry.pk))
        return KnownError.objects.select_related("fingerprint").get(pk=entry.pk)


def not_fixed(fingerprint: str, *, by: Any, now: datetime) -> KnownError:
    with transaction.atomic():
        hold()
        entry = _entry(fingerprint)
        if entry.fixed_at is None:
            raise refused(_("Cannot reopen the error: it is not marked as fixed."))
        fields = {"fixed_at": None, "fixed_in": "", "returned_at": None}
        return _change(entry, fields, FingerprintAct.REOPENED, {}, by, now)


def known_of(fingerprints: Collection[str]) -> Mapping[str, KnownError]:
    """Returns by fingerprint its entry, or that of the one it belongs to. Two queries."""
    heads = heads_of(fingerprints)
    entries = KnownError.objects.select_related("fingerprint").in_bulk(set(heads.values()))
    return {each: entries[head] for each, head in heads.items() if head in entries}


def _entry(fingerprint: str) -> KnownError:
    """Its row, locked, or a new one. The fingerprint's own row is the lock: two first entries cannot both be
    made."""
    row = Fingerprint.objects.select_for_update().filter(pk=heads_of([fingerprint])[fingerprint]).first()
    if row is None:
        raise never_met()
    return KnownError.objects.filter(pk=row.pk).first() or KnownError(fingerprint=row)


def _change(
    entry: KnownError,
    fields: dict[str, Any],
    what: FingerprintAct,
    detail: dict[str, Any],
    by: Any,
    now: datetime,
) -> KnownError:
    for name, value in fields.items():
        setattr(entry, name, value)
    entry.changed_at, entry.changed_by = now, by
    entry.save()
    if entry.fixed_at is None and not any(getattr(entry, name) for name in SAID):
        KnownError.objects.filter(pk=entry.pk).delete()  # nothing is known of it any more
    note_act(entry.pk, what, detail, by, now)
    return entry


def _checked(known: KnownErrorFields) -> dict[str, str]:
    said = {name: _line(text) for name, text in asdict(known).items()}
    if said["runbook_url"] and not _is_address(said["runbook_url"]):
        raise refused(_("Notes not saved: the runbook address must begin with http:// or https://."))
    return said | {"cause": storable(known.cause).strip()}


def _is_address(text: str) -> bool:
    """Says so of the address of a page; a host of the local network needs no dot."""
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and text.isprintable()
            and " " not in text
        )
    except ValueError:
        return False


def _line(text: str) -> str:
    return " ".join(storable(text).split())
