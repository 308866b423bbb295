"""What a service refused, told on the next page that the person sees."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect

from console.operations.refusals import Refused
from console.ui.page import link


def say(request: HttpRequest, refused: Any) -> None:
    """`refused` has a `reason`, and what to do where that is known."""
    messages.error(request, " ".join(filter(None, [refused.reason, refused.what_to_do])))


def no_job(request: HttpRequest, refused: Refused, back: str) -> HttpResponseRedirect:
    """To the job that is in the way, else `back`."""
    say(request, refused)
    running = refused.more.get("replay")
    return HttpResponseRedirect(link("replay", running) if running else back)
