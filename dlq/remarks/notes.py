"""Notes: free words of a person, never changed afterwards."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from dlq.models import DeadLetter, Note
from dlq.remarks.about import About, RemarkRefused, check, cleaned, name_of, told


def note(about: About, text: str, *, by: Any, now: datetime) -> Note:
    """Raises RemarkRefused."""
    check("note", about, by, now)
    words = cleaned(text)
    if not words:
        raise RemarkRefused("empty", _("The note is empty."))
    with transaction.atomic():
        written = Note.objects.create(**about.named, by=by, by_name=name_of(by), at=now, text=words)
        told("note", about, by, now, detail={"note": written.pk})
    return written


def notes_of(letter: DeadLetter) -> QuerySet[Note]:
    """Of its case, of its fingerprint, and of its setting whole; newest first."""
    wanted = Q(message_key="", fingerprint="")
    if letter.message_key:
        wanted |= Q(message_key=letter.message_key)
    if letter.fingerprint:
        wanted |= Q(fingerprint=letter.fingerprint)
    return Note.objects.filter(wanted, setting_key=letter.setting_key)
