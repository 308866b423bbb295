"""Fetching a dead letter whole, on its page: what it costs, how far it is, the bytes."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.provisioning.queue_counts import message_count
from console.operations.operation import perform
from dlq.full_body.operations import BODIES, Cost, DownloadBody, cost_of, latest, refusal
from dlq.models import OPEN_FETCHES, DeadLetter, FetchState, WholeFetch


@dataclass(frozen=True, slots=True)
class FullBodyPanel:
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


def full_body_panel(user: Any, letter: DeadLetter) -> FullBodyPanel | None:
    """Returns None where nothing is missing of the dead letter."""
    if not letter.truncated:
        return None
    fetch, refused = latest(letter), refusal(letter)
    if refused or (fetch is not None and fetch.state in (*OPEN_FETCHES, FetchState.DONE)):
        return FullBodyPanel(fetch, None, refused.reason if refused else "")
    count = message_count(letter.queue)
    if count is None:
        return FullBodyPanel(fetch, None, _("The broker is not responding."))
    return FullBodyPanel(fetch, cost_of(letter, count), "")


@require_safe
def whole_body(request: HttpRequest, pk: int) -> HttpResponseBase:
    letter = get_object_or_404(BODIES.rows_for(request.user), pk=pk)
    return body_file(letter, perform(DownloadBody, letter, request.user).made)


def body_file(letter: DeadLetter, content: bytes) -> HttpResponse:
    """Never shown by the browser, whatever it is."""
    response = HttpResponse(content, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="letter-{letter.pk}.bin"'
    return response
