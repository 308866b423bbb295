"""Routes of the alerts app under /api/v1/."""

from rest_framework.routers import SimpleRouter

from alerts.api.alerts import AlertViewSet
from alerts.api.notice_targets import TargetViewSet

router = SimpleRouter()
router.register("alerts", AlertViewSet, basename="api-alert")
router.register("notice-targets", TargetViewSet, basename="api-notice-target")

urlpatterns = router.urls
