"""What people do with a fingerprint: write what is known, say that it is fixed, merge and split. POST
only."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from console.ui.page import link, needs
from failures.fingerprints import book, merging, parts
from failures.fingerprints.refusing import FingerprintRefused
from failures.links import fingerprint_url
from failures.pages.fingerprint import MERGE, WRITE
from failures.pages.fingerprints import VIEW

Doing = Callable[[str, datetime], Any]


@require_POST
@needs(VIEW, WRITE)
def write(request: HttpRequest) -> HttpResponseBase:
    said = {name: request.POST.get(name, "") for name in book.Known.__dataclass_fields__}

    def do(fingerprint: str, now: datetime) -> None:
        book.write(fingerprint, book.Known(**said), by=request.user, now=now)

    return _done(request, do, _("Written. It is shown wherever this fingerprint appears."))


@require_POST
@needs(VIEW, WRITE)
def fixed(request: HttpRequest) -> HttpResponseBase:
    version = request.POST.get("version", "")
    return _done(
        request,
        lambda fingerprint, now: book.fixed(fingerprint, version, by=request.user, now=now),
        _("Fixed. If it comes again, it is said that it returned."),
    )


@require_POST
@needs(VIEW, WRITE)
def not_fixed(request: HttpRequest) -> HttpResponseBase:
    return _done(
        request,
        lambda fingerprint, now: book.not_fixed(fingerprint, by=request.user, now=now),
        _("It does not count as fixed any more."),
    )


@require_POST
@needs(VIEW, MERGE)
def merge(request: HttpRequest) -> HttpResponseBase:
    """`of` stays, `other` becomes part of it."""
    other = request.POST.get("other", "").strip()[:64]
    return _done(
        request,
        lambda fingerprint, now: merging.merge(other, fingerprint, by=request.user, now=now),
        _("Merged. Split it off again at any time: the counts stay apart."),
    )


@require_POST
@needs(VIEW, MERGE)
def split(request: HttpRequest) -> HttpResponseBase:
    other = request.POST.get("other", "")[:64]
    return _done(
        request,
        lambda fingerprint, now: merging.split(other, of=fingerprint, by=request.user, now=now),
        _("Split off. It stands for itself again."),
    )


@require_POST
@needs(VIEW, MERGE)
def part_off(request: HttpRequest) -> HttpResponseBase:
    """What `of` is in `setting` stands for itself."""
    setting = request.POST.get("setting", "")[:200]
    return _done(
        request,
        lambda fingerprint, now: parts.part_off(fingerprint, setting, by=request.user, now=now),
        _("Split off. What fails there from now on is of that kind too; join it again at any time."),
    )


@require_POST
@needs(VIEW, MERGE)
def join(request: HttpRequest) -> HttpResponseBase:
    """`other`, a part of `of`, is none any more."""
    other = request.POST.get("other", "")[:64]
    return _done(
        request,
        lambda fingerprint, now: parts.join(other, by=request.user, now=now),
        _("Joined again. Both were counted as one all the time."),
    )


def _done(request: HttpRequest, do: Doing, told: str) -> HttpResponseBase:
    fingerprint = request.POST.get("of", "")[:64]
    try:
        do(fingerprint, timezone.now())
    except FingerprintRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, told)
    return HttpResponseRedirect(fingerprint_url(fingerprint) if fingerprint else link("fingerprints"))
