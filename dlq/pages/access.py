"""Describes who gets to the pages of dead letters: with the permission to all, with a right in a pool to
those of the pool."""

from functools import wraps
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect

from agents.pools.rights import may_anywhere
from console.operations.refusals import Refused
from console.ui.page import View, link
from dlq.rights import SEE
from dlq.search.visibility import sees_queue


def sees_letters(view: View) -> View:
    """403 for who may see none at all. Being staff is checked by the site; which dead letters, by the
    view."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not may_anywhere(request.user, SEE):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return guarded


def check_queue(user: Any, queue: str) -> None:
    """Raises Http404 for a queue in which this person may see nothing."""
    if not sees_queue(user, queue):
        raise Http404


# -- what a service refused, told on the next page that the person sees --------------------------------------


def no_job(request: HttpRequest, refused: Refused, back: str) -> HttpResponseRedirect:
    """Leads to the job that is in the way, else to `back`."""
    messages.error(request, refused.sentence)
    running = refused.more.get("replay")
    return HttpResponseRedirect(link("replay", running) if running else back)
