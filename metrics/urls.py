"""Routes of this app under /api/v1/."""

from django.urls import path

from metrics.api import MetricSeries

urlpatterns = [path("metrics/series/", MetricSeries.as_view(), name="metrics-series")]
