"""Fetching a letter whole, on its page: what it costs, how far it is, the bytes."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from agents.services.queue_counts import message_count
from console.audit.log import attempt
from console.ui.page import link
from dlq.models import OPEN_FETCHES, DeadLetter, FetchState, WholeFetch
from dlq.pages.access import letter_or_404, sees_letters
from dlq.pages.refusals import say
from dlq.whole.asking import Cost, FetchRefused, ask, cancel, cost_of, latest, taken, why_not
from dlq.whole.bytes import bytes_for


@dataclass(frozen=True, slots=True)
class WholePanel:
    """`cost` is there where it may be asked for; None with `refusal`: why not."""

    fetch: WholeFetch | None
    cost: Cost | None
    refusal: str

    @property
    def open(self) -> bool:
        return self.fetch is not None and self.fetch.state in OPEN_FETCHES

    @property
    def done(self) -> bool:
        return self.fetch is not None and self.fetch.state == FetchState.DONE

    @property
    def problem(self) -> str:
        return str(self.fetch.problem) if self.fetch is not None else ""


def whole_panel(user: Any, letter: DeadLetter) -> WholePanel | None:
    """None where nothing is missing of the letter."""
    if not letter.truncated:
        return None
    fetch, refusal = latest(letter), why_not(letter)
    if refusal or (fetch is not None and fetch.state in (*OPEN_FETCHES, FetchState.DONE)):
        return WholePanel(fetch, None, refusal)
    count = message_count(letter.queue)
    if count is None:
        return WholePanel(fetch, None, _("The broker does not answer."))
    return WholePanel(fetch, cost_of(letter, count), "")


@require_POST
@sees_letters
def whole_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    letter, now = letter_or_404(request.user, pk), timezone.now()
    count = message_count(letter.queue)
    if count is None:
        messages.error(request, _("The broker does not answer. Nothing was changed; try again later."))
        return _back(letter)
    try:
        with attempt(
            "whole_asked", by=request.user, target=f"letter:{pk}", letter=pk, setting_key=letter.setting_key
        ):
            ask(letter, by=request.user, now=now, letters=count)
    except FetchRefused as refused:
        say(request, refused)
    return _back(letter)


@require_POST
@sees_letters
def cancel_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    letter = letter_or_404(request.user, pk)
    try:
        cancel(letter, by=request.user, now=timezone.now())
    except FetchRefused as refused:
        messages.error(request, refused.reason)
    return _back(letter)


@require_safe
@sees_letters
def whole_body(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Never shown by the browser, whatever it is."""
    letter = letter_or_404(request.user, pk)
    with attempt(
        "whole_downloaded", by=request.user, target=f"letter:{pk}", letter=pk, setting_key=letter.setting_key
    ):
        content = bytes_for(request.user, letter)
    if content is None:
        raise Http404
    taken(letter, by=request.user, now=timezone.now())
    response = HttpResponse(content, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="letter-{letter.pk}.bin"'
    return response


def _back(letter: DeadLetter) -> HttpResponseBase:
    return HttpResponseRedirect(link("letter", letter.pk) + "#body")
