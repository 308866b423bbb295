"""Routes of the failures app under /api/v1/."""

from django.urls import path

from failures.api.export import ExportProtocols
from failures.api.protocols import OneProtocol, Protocols

urlpatterns = [
    path("protocols/", Protocols.as_view(), name="protocols"),
    path("protocols/export/", ExportProtocols.as_view(), name="export-protocols"),
    path("protocols/<uuid:pk>/", OneProtocol.as_view(), name="protocol"),
]
