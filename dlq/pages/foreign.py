"""Foreign dead-letter queues: which are followed, and naming and forgetting them."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from console.audit.refusals import audited
from console.operations.operation import perform
from console.operations.refusals import Refused
from console.ui.page import link, needs, page
from dlq.index.queries import QueueState, state
from dlq.models import LetterQueue
from dlq.pages.overview import list_of
from dlq.queues.following import MANAGE
from dlq.queues.operations import FOREIGN_QUEUES, FollowQueue
from dlq.search.visibility import SEE_ALL


@dataclass(frozen=True, slots=True)
class Followed:
    row: LetterQueue
    state: QueueState

    @property
    def url(self) -> str:
        return list_of(self.row.queue)


def followed() -> list[Followed]:
    """All of them: there are never many."""
    return [Followed(row, state(row)) for row in FOREIGN_QUEUES.rows()]


@audited(FollowQueue.code)
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
    queue, note = request.POST.get("queue", "").strip(), request.POST.get("note", "")
    try:
        done = perform(FollowQueue, LetterQueue(queue=queue), request.user, reason=note)
    except Refused as refused:
        messages.error(request, refused.sentence)
    else:
        messages.success(request, str(done.message))
    return HttpResponseRedirect(link("foreign_queues"))
