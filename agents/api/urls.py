"""Routes of the agents app under /api/v1/."""

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from agents.api.acknowledgements import AcknowledgementViewSet
from agents.api.activations import ActivationViewSet
from agents.api.groups import GroupViewSet
from agents.api.heartbeat import HeartbeatView
from agents.api.pools import GrantViewSet
from agents.api.servers_pools import DestinationViewSet, PoolViewSet, ServerTokenViewSet, ServerViewSet
from agents.api.settings import QueueView, SettingViewSet
from agents.api.trips import TripViewSet

router = SimpleRouter()
router.register("settings", SettingViewSet, basename="api-setting")
router.register("groups", GroupViewSet, basename="api-group")
router.register("grants", GrantViewSet, basename="api-grant")
router.register("destinations", DestinationViewSet, basename="api-destination")
router.register("pools", PoolViewSet, basename="api-pool")
router.register("servers", ServerViewSet, basename="api-server")
router.register("server-tokens", ServerTokenViewSet, basename="api-server-token")
router.register("activations", ActivationViewSet, basename="api-activation")
router.register("acknowledgements", AcknowledgementViewSet, basename="api-acknowledgement")
router.register("trips", TripViewSet, basename="api-trip")

urlpatterns: list[URLPattern | URLResolver] = [
    path("heartbeat/", HeartbeatView.as_view(), name="api-heartbeat"),
    path("queues/<str:key>/", QueueView.as_view(), name="api-queue"),
    *router.urls,
]
