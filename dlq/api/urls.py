"""Routes of the dlq app under /api/v1/."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
