"""Registers the pages of this app."""

from django.utils.translation import gettext_lazy as _

from agents.acknowledgements.operations import Commit, RollBack
from agents.destinations.operations import AdoptPolicy, ApplyPolicy
from agents.groups.operations import DeleteGroup, DisableGroup, EnableGroup, MoveMember, RunGroup
from agents.pages import acknowledgements, activations, groups, previews, servers, settings, trips
from agents.pages import previews as pool_agents
from agents.servers.operations import Cordon, Drain, RemoveServer, RevokeServerToken, Uncordon
from agents.settings.operations import (
    DisableSetting,
    EnableSetting,
    RemoveSetting,
    ResumeRun,
    RetryMessage,
    RunSetting,
    StopSetting,
)
from console.operations.web import add_operations
from console.ui import panels
from console.ui.page import Tab, add_page, add_tab


def register() -> None:
    add_tab(
        Tab(
            "destinations",
            _("Destinations"),
            "admin:agents_destination_changelist",
            30,
            "agents.view_destination",
        )
    )
    add_tab(Tab("servers", _("Servers"), "admin:servers", 40, servers.VIEW))
    add_tab(Tab("groups", _("Groups"), "admin:groups", 25, groups.VIEW))
    add_tab(Tab("activations", _("Activations"), "admin:activations", 50, activations.VIEW))
    add_tab(Tab("trips", _("Trips"), "admin:trips", 55, trips.VIEW))
    add_page("settings/<slug:key>/", settings.setting_page, "setting")
    add_page("previews/destination/", previews.destination_preview, "destination_preview")
    add_page("previews/pool/<int:pk>/", pool_agents.pool_preview, "pool_preview")
    add_page("previews/setting/", previews.setting_preview, "setting_preview")
    add_page("activations/<uuid:pk>/", activations.activation_page, "activation")
    add_page("activations/", activations.activation_list, "activations")
    add_page("answers/", acknowledgements.answer_list, "answers")
    panels.register_panel("setting", 5, acknowledgements.panel_of_setting)
    add_page("trips/", trips.trip_list, "trips")
    add_page("trips/<int:pk>/", trips.trip_page, "trip")
    add_page("groups/", groups.group_list, "groups")
    add_page("groups/<slug:name>/", groups.group_page, "group")
    add_page("servers/", servers.server_list, "servers")
    add_page("servers/<str:name>/", servers.server_page, "server")
    add_operations(
        EnableSetting, DisableSetting, RunSetting, StopSetting, RetryMessage, ResumeRun, RemoveSetting
    )
    add_operations(ApplyPolicy, AdoptPolicy)
    add_operations(Commit, RollBack)
    add_operations(EnableGroup, DisableGroup, RunGroup, MoveMember, DeleteGroup)
    add_operations(Cordon, Drain, Uncordon, RemoveServer, RevokeServerToken)
