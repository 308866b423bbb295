"""Addresses of this app: its pages and panels, which `register` adds, and its routes under /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from console.operations.web import add_operations
from console.ui.page import add_page, register_panel
from insights.api import Insights, PipelineRunViewSet, views
from insights.pages.insights import insight_table, insights_page
from insights.pages.panel import insight_panel
from insights.pages.run import run_bar, run_page
from insights.runs.operations import PIPELINE_OPERATIONS


def register() -> None:
    add_operations(*PIPELINE_OPERATIONS)
    add_page("insights/", insights_page, "insights")
    add_page("insights/run-bar/", run_bar, "insights_run_bar")
    add_page("insights/runs/<uuid:pk>/", run_page, "pipeline_run")
    add_page("insights/tables/<slug:name>/", insight_table, "insight_table")
    register_panel("setting_whole", 20, insight_panel)


router = SimpleRouter()
router.register("pipeline-runs", PipelineRunViewSet, basename="pipeline-run")
urlpatterns = [
    path("insights/", Insights.as_view(), name="insights"),
    *(
        path(f"insights/{table.replace('_', '-')}/", view.as_view(), name=f"insights-{table}")
        for table, view in views().items()
    ),
    *router.urls,
]
