"""Registers the pages of this app."""

from django.utils.translation import gettext_lazy as _

from agents.pages import (
    activation,
    activations,
    alert_actions,
    alerts,
    answers,
    destination_policy,
    group_actions,
    group_pages,
    notices,
    pool_agents,
    previews,
    server_actions,
    servers,
    setting_actions,
    settings,
    trips,
)
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
    add_tab(Tab("groups", _("Groups"), "admin:groups", 25, group_pages.VIEW))
    add_tab(Tab("activations", _("Activations"), "admin:activations", 50, activation.VIEW))
    add_tab(Tab("trips", _("Trips"), "admin:trips", 55, trips.VIEW))
    add_tab(Tab("alerts", _("Alerts"), "admin:alerts", 15, alerts.VIEW, badge=alerts.badge))
    add_page("alerts/", alerts.alert_list, "alerts")
    add_page("alerts/<int:pk>/", alerts.alert_page, "alert")
    add_page("alerts/<int:pk>/snooze/", alert_actions.snooze_page, "alert_snooze")
    add_page("alerts/<int:pk>/close/", alert_actions.close_page, "alert_close")
    add_page("settings/<slug:key>/", settings.setting_page, "setting")
    add_page("settings/<slug:key>/enable/", setting_actions.enable_page, "setting_enable")
    add_page("settings/<slug:key>/disable/", setting_actions.disable_page, "setting_disable")
    add_page("settings/<slug:key>/run/", setting_actions.run_page, "setting_run")
    add_page("settings/<slug:key>/retry/", setting_actions.retry_page, "setting_retry")
    add_page("settings/<slug:key>/stop/", setting_actions.stop_page, "setting_stop")
    add_page("settings/<slug:key>/notices/<int:pk>/test/", notices.test_page, "notice_test")
    add_page("settings/<slug:key>/resume/<str:name>/", setting_actions.resume_page, "setting_resume")
    add_page("destinations/<int:pk>/apply/", destination_policy.apply_page, "destination_apply")
    add_page("destinations/<int:pk>/adopt/", destination_policy.adopt_page, "destination_adopt")
    add_page("previews/destination/", previews.destination_preview, "destination_preview")
    add_page("previews/pool/<int:pk>/", pool_agents.pool_preview, "pool_preview")
    add_page("previews/setting/", previews.setting_preview, "setting_preview")
    add_page("activations/<uuid:pk>/", activation.activation_page, "activation")
    add_page("activations/", activations.activation_list, "activations")
    add_page("answers/", answers.answer_list, "answers")
    add_page("answers/<int:pk>/commit/", answers.commit_page, "answer_commit")
    add_page("answers/<int:pk>/rollback/", answers.rollback_page, "answer_rollback")
    panels.register("setting", 5, answers.panel_of_setting)
    add_page("trips/", trips.trip_list, "trips")
    add_page("trips/<int:pk>/", trips.trip_page, "trip")
    add_page("groups/", group_pages.group_list, "groups")
    add_page("groups/<slug:name>/", group_pages.group_page, "group")
    add_page("groups/<slug:name>/enable/", group_actions.enable_page, "group_enable")
    add_page("groups/<slug:name>/disable/", group_actions.disable_page, "group_disable")
    add_page("groups/<slug:name>/run/", group_actions.run_page, "group_run")
    add_page("groups/<slug:name>/move/", group_actions.move_page, "group_move")
    add_page("servers/", servers.server_list, "servers")
    add_page("servers/<str:name>/", servers.server_page, "server")
    add_page("servers/<str:name>/cordon/", server_actions.cordon_page, "server_cordon")
    add_page("servers/<str:name>/drain/", server_actions.drain_page, "server_drain")
    add_page("servers/<str:name>/back/", server_actions.back_page, "server_back")
