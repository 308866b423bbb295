"""What people wrote about a message, and what was written down of its way."""

from collections.abc import Collection, Mapping
from datetime import datetime
from urllib.parse import quote

from django.db.models import Q
from django.http import QueryDict

from console.saved_filters.models import SavedFilter
from dlq.models import KnownFault, LetterReport, Note, ReplayJob, Taking, WaitingItem
from dlq.models.replay import UNFINISHED_JOBS
from failures.erasing import Case, Wanted, of_cases, rekey

SHORT = 4


def erase_remarks(cases: Collection[Case], now: datetime, *, dry: bool) -> Mapping[str, int]:
    """Faults and takings end with it: of one case only one may be open."""
    if not dry:
        for model in (KnownFault, Taking):
            of_cases(model._default_manager.filter(ended_at=None), cases).update(ended_at=now)
    return {
        "notes": rekey(Note.objects.all(), cases, dry=dry, text=""),
        "known faults": rekey(KnownFault.objects.all(), cases, dry=dry, text="", ticket=""),
        "takings": rekey(Taking.objects.all(), cases, dry=dry, text=""),
        "reports": rekey(LetterReport.objects.all(), cases, dry=dry),
        "waiting messages": rekey(WaitingItem.objects.all(), cases, dry=dry),
    }


def settings_of(message_key: str) -> set[str]:
    known: set[str] = set()
    for model in (Note, KnownFault, Taking, LetterReport, WaitingItem):
        rows = model._default_manager.filter(message_key=message_key).order_by()
        known.update(rows.values_list("setting_key", flat=True).distinct())
    return known


def erase_queries(wanted: Wanted, *, dry: bool) -> Mapping[str, int]:
    """Filters that look for it: those with a name are deleted, replays that are over forget theirs."""
    names_it = Q(query__contains=quote(wanted.secret, safe="")) | Q(query__contains=wanted.secret)
    names_it |= Q(query__contains=quote(wanted.secret, safe="").replace("%20", "+"))
    saved = SavedFilter.objects.filter(names_it).values_list("pk", "query")
    named = [pk for pk, query in saved if looks_for(query, wanted)]
    jobs = ReplayJob.objects.filter(names_it).exclude(state__in=UNFINISHED_JOBS).values_list("pk", "query")
    over = [pk for pk, query in jobs if looks_for(query, wanted)]
    if not dry:
        SavedFilter.objects.filter(pk__in=named).delete()
        ReplayJob.objects.filter(pk__in=over).update(query="")
    return {"saved filters": len(named), "filters of replays": len(over)}


def looks_for(query: str, wanted: Wanted) -> bool:
    """Whether the filter, as of an address, holds what is to be nowhere; what is very short only as a whole
    value."""
    values = [value for _name, each in QueryDict(query).lists() for value in each]
    if len(wanted.secret) < SHORT:
        return any(wanted.secret in (value, value.partition("=")[2].strip()) for value in values)
    return any(wanted.secret in value for value in values)
