"""Addresses of this app: its pages and panels, which `register` adds, and its routes under /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from alerts.api.alerts import AlertViewSet
from alerts.api.notice_targets import NoticeViewSet, TargetViewSet
from alerts.api.rules import AlertRules
from alerts.notices.operations import ResendNotice, SendTest
from alerts.operations import CloseAlert, SnoozeAlert
from alerts.pages import alerts, notices
from console.audit.refusals import audited
from console.operations.web import add_operations
from console.ui.page import add_page, register_panel


def register() -> None:
    add_page("alerts/", alerts.alert_list, "alerts")
    add_page("alerts/<int:pk>/", alerts.alert_page, "alert")
    add_page(
        "settings/<slug:key>/notices/<int:pk>/test/",
        audited(SendTest.code)(notices.test_page),
        "notice_test",
    )
    add_page("notices/", notices.notice_list, "notices")
    add_page("notices/<int:pk>/", notices.notice_page, "notice")
    add_page(
        "notice-targets/<int:pk>/test/",
        audited(SendTest.code)(notices.target_test_page),
        "notice_target_test",
    )
    add_operations(SnoozeAlert, CloseAlert, ResendNotice)
    register_panel("setting_notes", 10, alerts.notes_of_setting)
    register_panel("server_notes", 10, alerts.notes_of_server)
    register_panel("setting", 15, alerts.goal_of_setting)
    register_panel("setting", 90, notices.panel_of_setting)
    register_panel("trip_side", 10, notices.panel_of_trip)


router = SimpleRouter()
router.register("alerts", AlertViewSet, basename="api-alert")
router.register("notices", NoticeViewSet, basename="api-notice")
router.register("notice-targets", TargetViewSet, basename="api-notice-target")

urlpatterns = [path("alert-rules/", AlertRules.as_view(), name="alert-rules"), *router.urls]
