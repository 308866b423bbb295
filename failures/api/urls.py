"""Routes of the failures app under /api/v1/."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
