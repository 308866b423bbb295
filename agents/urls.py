"""Addresses of this app: its pages, which `register` adds, and its routes under /api/v1/."""

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from agents.acknowledgements.operations import Commit, RollBack
from agents.api.acknowledgements import AcknowledgementViewSet
from agents.api.activations import ActivationViewSet
from agents.api.freezes import FreezeViewSet, MaintenanceViewSet, SiteViewSet
from agents.api.groups import GroupViewSet
from agents.api.heartbeat import HeartbeatView
from agents.api.manifests import Manifests
from agents.api.servers_pools import (
    DestinationPolicyViewSet,
    DestinationViewSet,
    GrantViewSet,
    PoolViewSet,
    ServerTokenViewSet,
    ServerViewSet,
)
from agents.api.settings import QueueView, SettingViewSet
from agents.api.trips import TripViewSet
from agents.destinations.operations import AdoptPolicy, ApplyPolicy
from agents.freezes.operations import FreezePool, FreezeSite, UnfreezePool, UnfreezeSite
from agents.groups.operations import DeleteGroup, DisableGroup, EnableGroup, MoveMember, RunGroup
from agents.pages import (
    acknowledgements,
    activations,
    destinations,
    freezes,
    groups,
    previews,
    servers,
    settings,
    trips,
)
from agents.pages import previews as pool_agents
from agents.servers.operations import Cordon, Drain, RemoveServer, RevokeServerToken, Uncordon
from agents.settings.operations import (
    DisableSetting,
    EnableSetting,
    LabelSetting,
    RemoveSetting,
    ResumeRun,
    RetryMessage,
    RunSetting,
    StartOnServer,
    StopOnServer,
    StopSetting,
)
from console.operations.web import add_operations
from console.ui.page import add_page, register_panel


def register() -> None:
    add_page("settings/<slug:key>/", settings.setting_page, "setting")
    add_page("previews/destination/", previews.destination_preview, "destination_preview")
    add_page("previews/pool/<int:pk>/", pool_agents.pool_preview, "pool_preview")
    add_page("previews/setting/", previews.setting_preview, "setting_preview")
    add_page("activations/<uuid:pk>/", activations.activation_page, "activation")
    add_page("activations/", activations.activation_list, "activations")
    add_page("answers/", acknowledgements.answer_list, "answers")
    register_panel("setting", 5, acknowledgements.panel_of_setting)
    add_page("trips/", trips.trip_list, "trips")
    add_page("trips/<int:pk>/", trips.trip_page, "trip")
    add_page("groups/", groups.group_list, "groups")
    add_page("groups/<slug:name>/", groups.group_page, "group")
    add_page("destinations/", destinations.destination_list, "destinations")
    add_page("destinations/<int:pk>/", destinations.destination_page, "destination")
    add_page("servers/", servers.server_list, "servers")
    add_page("servers/<str:name>/", servers.server_page, "server")
    add_page("freezes/", freezes.freeze_list, "freezes")
    add_page("site/<int:pk>/", freezes.site_page, "site")
    add_page("pools/<slug:name>/", freezes.pool_page, "pool")
    register_panel("banner", 0, freezes.banner)
    add_operations(FreezeSite, UnfreezeSite, FreezePool, UnfreezePool)
    add_operations(
        EnableSetting, DisableSetting, RunSetting, StopSetting, RetryMessage, ResumeRun, RemoveSetting
    )
    add_operations(StopOnServer, StartOnServer, LabelSetting)
    add_operations(ApplyPolicy, AdoptPolicy)
    add_operations(Commit, RollBack)
    add_operations(EnableGroup, DisableGroup, RunGroup, MoveMember, DeleteGroup)
    add_operations(Cordon, Drain, Uncordon, RemoveServer, RevokeServerToken)


router = SimpleRouter()
router.register("settings", SettingViewSet, basename="api-setting")
router.register("groups", GroupViewSet, basename="api-group")
router.register("grants", GrantViewSet, basename="api-grant")
router.register("destinations", DestinationViewSet, basename="api-destination")
router.register("destination-policies", DestinationPolicyViewSet, basename="api-destination-policy")
router.register("pools", PoolViewSet, basename="api-pool")
router.register("site", SiteViewSet, basename="api-site")
router.register("freezes", FreezeViewSet, basename="api-freeze")
router.register("maintenance-windows", MaintenanceViewSet, basename="api-maintenance")
router.register("servers", ServerViewSet, basename="api-server")
router.register("server-tokens", ServerTokenViewSet, basename="api-server-token")
router.register("activations", ActivationViewSet, basename="api-activation")
router.register("acknowledgements", AcknowledgementViewSet, basename="api-acknowledgement")
router.register("trips", TripViewSet, basename="api-trip")

urlpatterns: list[URLPattern | URLResolver] = [
    path("heartbeat/", HeartbeatView.as_view(), name="api-heartbeat"),
    path("manifests/", Manifests.as_view(), name="api-manifests"),
    path("queues/<str:key>/", QueueView.as_view(), name="api-queue"),
    *router.urls,
]
