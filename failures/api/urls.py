"""Routes of the failures app under /api/v1/."""

from django.urls import path

from failures.api.protocols import OneProtocol, Protocols

urlpatterns = [
    path("protocols/", Protocols.as_view(), name="protocols"),
    path("protocols/<uuid:pk>/", OneProtocol.as_view(), name="protocol"),
]
