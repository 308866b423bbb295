"""Dead letters of every setting: the broker's exact count, since when, of what, who works on it, what is
given back."""

from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting
from agents.pools.rights import may_anywhere, settings_for
from agents.provisioning.queue_counts import figures_of
from console.lists.keyset import COUNTED
from console.ui.page import link, page
from console.ui.panels import Panel
from contract.names import BIN, DEAD_LETTER_PREFIX, UNKNOWN, dead_letter_queue
from dlq import rights
from dlq.index.queries import feed_lag
from dlq.models import DeadLetter, LetterQueue, LetterState, ReplayJob
from dlq.pages.queue_rows import bin_row, queue_rows, setting_row, told_more, unknown_row
from dlq.pages.replay_words import JOBS
from dlq.search.visibility import SEE_ALL, sees_all

MOST_FOREIGN = 100


@require_safe
def overview(request: HttpRequest) -> HttpResponseBase:
    """For who may see letters everywhere or in a pool: then of the settings there."""
    user = request.user
    if not may_anywhere(user, rights.SEE):
        raise PermissionDenied
    now = timezone.now()
    settings = settings_for(user, rights.SEE).select_related("destination", "pool").order_by("key")
    rows = sorted(
        queue_rows(list(settings)),
        key=lambda row: (row.empty, -row.size, row.key),
    )
    every = sees_all(user)
    return page(
        request,
        "dlq/overview.html",
        title=_("Dead letters"),
        section="dead_letters",
        rows=told_more(rows, now),
        unknown=unknown_row() if every else None,
        bin=bin_row() if every else None,
        foreign=list(LetterQueue.objects.filter(foreign=True)[:MOST_FOREIGN]) if every else [],
        removed=_removed() if every else [],
        answered=any(row.exact is not None for row in rows) or not rows,
        stale=any(row.figures.stale for row in rows),
        lag=feed_lag(now),
    )


def _removed() -> list[str]:
    """Keys of settings that are gone and left dead letters; no more than a page can show."""
    rows = DeadLetter.objects.filter(setting=None, state=LetterState.DEAD).order_by()
    rows = rows.exclude(queue__in=[dead_letter_queue(UNKNOWN), dead_letter_queue(BIN)])
    rows = rows.exclude(queue__in=LetterQueue.objects.filter(foreign=True).values("queue"))
    keys = set(rows.values_list("setting_key", flat=True)[:COUNTED])
    return sorted(keys.difference(LaunchSetting.objects.order_by().values_list("key", flat=True)))


# -- where the letters of a queue are listed -----------------------------------------------------------------


def list_of(queue: str, **wanted: str) -> str:
    """The list of its setting; of a foreign queue, which has no page of its own, the list of all narrowed to
    it."""
    if queue.startswith(DEAD_LETTER_PREFIX):
        address = link("dead_letters_of", queue.removeprefix(DEAD_LETTER_PREFIX))
    else:
        address, wanted = link("all_dead_letters"), {"queue": queue, **wanted}
    return f"{address}?{urlencode(wanted)}" if wanted else address


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
