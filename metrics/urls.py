"""Addresses of this app: its page and its panels on pages of others, which `register` adds, and its routes
under /api/v1/."""

from django.urls import path

from console.ui.page import add_page, register_panel
from metrics.api import MetricSeries
from metrics.pages import panels, timeline


def register() -> None:
    add_page("timeline/", timeline.timeline, "timeline")
    register_panel("setting_whole", 1, panels.setting_panel)
    register_panel("server", 1, panels.server_panel)
    register_panel("activation", 5, panels.activation_panel)
    register_panel("destination", 10, panels.destination_panel)


urlpatterns = [path("metrics/series/", MetricSeries.as_view(), name="metrics-series")]
