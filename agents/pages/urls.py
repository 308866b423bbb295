"""Registers the pages of this app."""

from django.utils.translation import gettext_lazy as _

from agents.pages import activation, previews, servers, settings
from agents.pages.consoles import Tab, add_page, add_tab


def register() -> None:
    add_tab(
        Tab("destinations", _("Destinations"), "admin:agents_destination_changelist", 30, "agents.view_destination")
    )
    add_tab(Tab("servers", _("Servers"), "admin:servers", 40, servers.VIEW))
    add_page("settings/<slug:key>/", settings.setting_page, "setting")
    add_page("settings/<slug:key>/enable/", settings.enable_page, "setting_enable")
    add_page("settings/<slug:key>/disable/", settings.disable_page, "setting_disable")
    add_page("previews/destination/", previews.destination_preview, "destination_preview")
    add_page("previews/setting/", previews.setting_preview, "setting_preview")
    add_page("activations/<uuid:pk>/", activation.activation_page, "activation")
    add_page("servers/", servers.server_list, "servers")
    add_page("servers/<str:name>/", servers.server_page, "server")
