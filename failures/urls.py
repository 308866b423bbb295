"""Addresses of this app: its pages and panels, which `register` adds, and its routes under /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from console.audit.refusals import LOOKS_BESIDE_FILES, audited
from console.operations.web import add_operations
from console.ui.page import add_page, register_panel
from failures.api.breaker import SettingBreaker, SettingWhatIf
from failures.api.difference import ActivationDifferences
from failures.api.fingerprints import FingerprintViewSet
from failures.api.intake import RecordIntake
from failures.api.protocols import ExportProtocols, OneProtocol, ProtocolList
from failures.error_groups.operations import FINGERPRINT_OPERATIONS
from failures.pages.breaker import breaker_panel, location_panel, trip_panel
from failures.pages.difference import difference_panel
from failures.pages.fingerprint import fingerprint_page
from failures.pages.fingerprints import fingerprint_list
from failures.pages.groups import activation_panel, failures_of_server, latest_of_server, setting_panel
from failures.pages.protocol import protocol_page
from failures.pages.protocols import export_page, protocol_list, protocol_news
from failures.pages.reports import server_panel
from failures.pages.what_if import what_if_page, what_if_panel
from failures.protocols.exporting import EXPORT
from failures.saved_filters import OneSavedProtocolFilter, SavedProtocolFilters
from failures.saved_filters import pages as saved_filter_pages


def register() -> None:
    add_page("fingerprints/", fingerprint_list, "fingerprints")
    add_page("fingerprint/", fingerprint_page, "fingerprint")
    add_operations(*FINGERPRINT_OPERATIONS)
    add_page("protocols/", protocol_list, "protocols")
    add_page("protocols/news/", protocol_news, "protocol_news")
    add_page("protocols/export/", audited(EXPORT, LOOKS_BESIDE_FILES)(export_page), "export_protocols")
    saved_filter_pages.register()
    add_page("protocols/<uuid:pk>/", protocol_page, "protocol")
    add_page("settings/<slug:key>/what-if/", what_if_page, "setting_what_if")
    register_panel("setting_live", 10, breaker_panel)
    register_panel("setting_whole", 10, what_if_panel)
    register_panel("trip_head", 10, location_panel)
    register_panel("trip", 10, trip_panel)
    register_panel("server", 4, failures_of_server)
    register_panel("server", 5, latest_of_server)
    register_panel("server", 10, server_panel)
    register_panel("activation", 10, activation_panel)
    register_panel("activation", 20, difference_panel)
    register_panel("setting", 10, setting_panel)


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
    path("settings/<str:key>/breaker/", SettingBreaker.as_view(), name="setting-breaker"),
    path("settings/<str:key>/what-if/", SettingWhatIf.as_view(), name="setting-what-if"),
    path("activations/<uuid:pk>/difference/", ActivationDifferences.as_view(), name="activation-difference"),
    *router.urls,
]
