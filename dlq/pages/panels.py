"""What the page of a setting shows of its dead letters."""

from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.services.queue_counts import figures_of
from console.ui.panels import Panel
from dlq.models import ReplayJob
from dlq.pages.letters import VIEW
from dlq.pages.queue_rows import setting_row
from dlq.pages.shown import JOBS

LATEST = 3


def setting_panel(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    if not setting.takes_messages or not request.user.has_perm(VIEW):
        return None
    figures = figures_of(setting)
    jobs = ReplayJob.objects.filter(setting=setting).select_related("by")[:LATEST]
    context = {
        "row": setting_row(setting, figures),
        "jobs": [(job, JOBS[job.state]) for job in jobs],
    }
    return {"title": _("Dead letters"), "template": "dlq/setting_panel.html", "context": context}
