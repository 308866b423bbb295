"""Registers the pages and panels of this app."""

from django.utils.translation import gettext_lazy as _

from console.operations.web import add_operations
from console.ui import panels
from console.ui.page import Tab, add_page, add_tab
from insights.pages.insights import insight_table, insights_page
from insights.pages.panel import insight_panel
from insights.pages.run import VIEW, run_bar, run_page
from insights.runs.operations import PIPELINE_OPERATIONS


def register() -> None:
    add_operations(*PIPELINE_OPERATIONS)
    add_tab(Tab("insights", _("Insights"), "admin:insights", 64, VIEW))
    add_page("insights/", insights_page, "insights")
    add_page("insights/run-bar/", run_bar, "insights_run_bar")
    add_page("insights/runs/<uuid:pk>/", run_page, "pipeline_run")
    add_page("insights/tables/<slug:name>/", insight_table, "insight_table")
    panels.register_panel("setting_whole", 20, insight_panel)
