"""Routes of the failures app under /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from failures.api.fingerprints import FingerprintViewSet
from failures.api.intake import RecordIntake
from failures.api.protocols import ExportProtocols, OneProtocol, ProtocolList
from failures.saved_filters import OneSavedProtocolFilter, SavedProtocolFilters

router = SimpleRouter()
router.register("fingerprints", FingerprintViewSet, basename="fingerprint")


class ProtocolsRoute(RecordIntake, ProtocolList):
    """KMAs bring records, people look at protocols."""


urlpatterns = [
    path("protocols/", ProtocolsRoute.as_view(), name="protocols"),
    path("protocols/export/", ExportProtocols.as_view(), name="export-protocols"),
    path("protocols/saved/", SavedProtocolFilters.as_view(), name="saved-views"),
    path("protocols/saved/<int:pk>/", OneSavedProtocolFilter.as_view(), name="saved-view"),
    path("protocols/<uuid:pk>/", OneProtocol.as_view(), name="protocol"),
    *router.urls,
]
