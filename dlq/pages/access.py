"""Describes who gets to the pages of dead letters: with the permission to all, with a right in a pool to
those of the pool."""

from functools import wraps
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect

from agents.pools.rights import may_anywhere
from console.operations.refusals import Refused
from console.ui.page import View, link
from dlq.models import DeadLetter
from dlq.rights import SEE
from dlq.search.visibility import letters_for, queues_for


def sees_letters(view: View) -> View:
    """403 for who may see none at all. Being staff is checked by the site; which dead letters, by the
    view."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not may_anywhere(request.user, SEE):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return guarded


def letter_or_404(user: Any, pk: int, rows: QuerySet[DeadLetter] | None = None) -> DeadLetter:
    """A dead letter of others is not there, like one that never was. `rows`: with what it is read."""
    seen = letters_for(user) if rows is None else rows & letters_for(user)
    letter = seen.filter(pk=pk).first()
    if letter is None:
        raise Http404
    return letter


def check_queue(user: Any, queue: str) -> None:
    """Raises Http404 for a queue in which this person may see nothing."""
    mine = queues_for(user)
    if mine is not None and queue not in mine:
        raise Http404


# -- what a service refused, told on the next page that the person sees --------------------------------------


def say(request: HttpRequest, refused: Any) -> None:
    """`refused` has a `reason`, and what to do where that is known."""
    messages.error(request, " ".join(filter(None, [refused.reason, refused.what_to_do])))


def no_job(request: HttpRequest, refused: Refused, back: str) -> HttpResponseRedirect:
    """Leads to the job that is in the way, else to `back`."""
    say(request, refused)
    running = refused.more.get("replay")
    return HttpResponseRedirect(link("replay", running) if running else back)
