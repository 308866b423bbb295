"""Dead-letter queues: the overview of all, what the page of a setting shows of its own, and those of others
that are followed."""

from dataclasses import dataclass, replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_safe

from agents.models import LaunchSetting
from agents.pools.rights import check_anywhere, settings_for
from agents.provisioning.queue_counts import broker_away_since, figures_of
from console.audit.refusals import audited
from console.lists.columns import NUMBER, Column, address_of, listing, matching, search_in
from console.lists.keyset import COUNTED
from console.operations.operation import perform
from console.operations.refusals import Refused
from console.ui.amounts import number
from console.ui.charts.chart import sparkline
from console.ui.page import Panel, link, needs, page
from contract.names import BIN, UNKNOWN, dead_letter_queue
from dlq import rights
from dlq.index.queries import QueueState, feed_lag, state
from dlq.models import DeadLetter, LetterQueue, LetterState, ReplayJob
from dlq.pages.page_head import list_of
from dlq.queues.operations import FOREIGN_QUEUES, MANAGE, FollowQueue
from dlq.queues.queries import QueueRow, queue_rows, setting_row, trash_row, unknown_row, with_facts
from dlq.replay.text import JOBS
from dlq.search.visibility import SEE_ALL, sees_all

MOST_FOREIGN = 100


EMPTY = "empty"
COLUMNS: tuple[Column[QueueRow], ...] = (
    Column("key", gettext_lazy("Setting"), lambda row: row.key),
    Column("dead", gettext_lazy("Dead letters"), lambda row: row.size, largest_first=True, classes="num"),
    Column("hour", gettext_lazy("Last hour"), classes="num"),
    Column("day", gettext_lazy("Last 24 h"), classes="less"),
    Column("since", gettext_lazy("In DLQ since"), lambda row: row.since),
    Column("error", gettext_lazy("Top error")),
    Column("assignee", gettext_lazy("Assignee"), classes="least"),
    Column("replaying", gettext_lazy("Replaying"), classes="least"),
)


@require_safe
def overview(request: HttpRequest) -> HttpResponseBase:
    """Shows it to those who may see dead letters everywhere or in a pool: then of the settings there. Queues
    that are empty for certain are hidden until somebody asks for them."""
    user = request.user
    check_anywhere(user, rights.SEE)
    now = timezone.now()
    settings = settings_for(user, rights.SEE).select_related("destination", "pool").order_by("key")
    rows = queue_rows(list(settings))
    found = matching(rows, search_in(request.GET), lambda row: [row.key])
    with_empty = bool(request.GET.get(EMPTY))
    shown = [row for row in found if with_empty or not row.idle]
    listed = listing(request, sorted(shown, key=lambda row: row.worst_first), COLUMNS)
    every = sees_all(user)
    return page(
        request,
        "dlq/queues.html",
        title=_("Dead letters"),
        section="dead_letters",
        rows=[_with_line(row) for row in with_facts(listed.rows, now)],
        listing=listed,
        pages=listed.pages,
        kept=listed.kept,
        settings=len(rows),
        hidden=len(found) - len(shown),
        with_empty=with_empty,
        empty_query=address_of(request.GET, EMPTY, NUMBER),
        unknown=unknown_row() if every else None,
        bin=trash_row() if every else None,
        foreign=list(LetterQueue.objects.filter(foreign=True)[:MOST_FOREIGN]) if every else [],
        removed=_removed() if every else [],
        answered=broker_away_since() is None or any(row.exact is not None for row in rows) or not rows,
        stale=broker_away_since() is not None,
        lag=feed_lag(now),
    )


def _with_line(row: QueueRow) -> QueueRow:
    if row.more is None or not row.more.line:
        return row
    hours = row.more.line
    total = sum(hours)
    words = ngettext(
        "%(n)s dead-lettered in the last 24 hours, peak: %(most)s in one hour",
        "%(n)s dead-lettered in the last 24 hours, peak: %(most)s in one hour",
        total,
    )
    drawn = sparkline(hours, words % {"n": number(total), "most": number(max(hours))})
    return replace(row, more=replace(row.more, spark=drawn))


def _removed() -> list[str]:
    """Keys of settings that are gone and left dead letters; no more than a page can show."""
    rows = DeadLetter.objects.filter(setting=None, state=LetterState.DEAD).order_by()
    rows = rows.exclude(queue__in=[dead_letter_queue(UNKNOWN), dead_letter_queue(BIN)])
    rows = rows.exclude(queue__in=LetterQueue.objects.filter(foreign=True).values("queue"))
    keys = set(rows.values_list("setting_key", flat=True)[:COUNTED])
    return sorted(keys.difference(LaunchSetting.objects.order_by().values_list("key", flat=True)))


# -- what the page of a setting shows of its dead letters ----------------------------------------------------


LATEST = 3


def setting_panel(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    if not setting.takes_messages or not request.user.has_perm(SEE_ALL):
        return None
    figures = figures_of(setting)
    jobs = ReplayJob.objects.filter(setting=setting).select_related("by")[:LATEST]
    context = {
        "row": setting_row(setting, figures),
        "jobs": [(job, JOBS[job.state]) for job in jobs],
    }
    return {"title": _("Dead letters"), "template": "dlq/setting_panel.html", "context": context}


# -- foreign dead-letter queues: which are followed, and naming and forgetting them --------------------------


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
        "dlq/foreign_queues.html",
        title=_("Other dead-letter queues"),
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
