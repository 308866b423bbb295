"""Foreign dead-letter queues: which are followed, and naming and forgetting them."""

from dataclasses import dataclass
from typing import Any

import structlog
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from broker.errors import BrokerError
from console.audit.log import attempt
from console.broker import management
from console.ui.page import link, needs, page
from dlq.foreign.naming import MANAGE, foreign_queues, forget_queue, name_queue
from dlq.foreign.refusal import ForeignRefused
from dlq.letters_for import SEE_ALL
from dlq.models import LetterQueue
from dlq.pages.list_of import list_of
from dlq.pages.refusals import say
from dlq.queue_state import QueueState, state

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Followed:
    row: LetterQueue
    state: QueueState

    @property
    def url(self) -> str:
        return list_of(self.row.queue)


def followed() -> list[Followed]:
    """All of them: there are never many."""
    return [Followed(row, state(row)) for row in foreign_queues().select_related("added_by")]


@require_http_methods(["GET", "HEAD", "POST"])
@needs(SEE_ALL)
def foreign_page(request: HttpRequest) -> HttpResponseBase:
    if request.method == "POST":
        return _named(request)
    return page(
        request,
        "dlq/foreign.html",
        title=_("Foreign dead-letter queues"),
        section="dead_letters",
        crumbs=[(_("Dead letters"), link("dead_letters"))],
        queues=followed(),
        may_manage=request.user.has_perm(MANAGE),
    )


def _named(request: HttpRequest) -> HttpResponseBase:
    queue, now, by = request.POST.get("queue", "").strip(), timezone.now(), request.user
    with attempt("foreign_named", by=by, target=f"queue:{queue}"):
        _check(by)
    try:
        with attempt("foreign_named", by=by, target=f"queue:{queue}"):
            name_queue(queue, request.POST.get("note", ""), by=by, now=now, asked=management())
    except ForeignRefused as refused:
        say(request, refused)
    except BrokerError as error:
        log.warning("foreign queue not looked up", queue=queue, reason=str(error))
        messages.error(request, _("The broker does not answer. Nothing was changed; try again later."))
    else:
        messages.success(request, _("It is followed now. Its letters are in the lists after the next walk."))
    return HttpResponseRedirect(link("foreign_queues"))


@require_POST
@needs(SEE_ALL)
def forget_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    row = get_object_or_404(foreign_queues(), pk=pk)
    try:
        with attempt("foreign_forgotten", by=request.user, target=f"queue:{row.queue}"):
            _check(request.user)
            forget_queue(row.queue, by=request.user, now=timezone.now())
    except ForeignRefused as refused:
        messages.error(request, refused.reason)
    else:
        messages.success(request, _("It is not followed any more. Its letters stay at the broker."))
    return HttpResponseRedirect(link("foreign_queues"))


def _check(user: Any) -> None:
    if not user.has_perm(MANAGE):
        raise PermissionDenied
