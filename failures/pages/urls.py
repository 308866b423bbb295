"""Registers the pages and panels of this app."""

from django.utils.translation import gettext_lazy as _

from agents import panels
from agents.pages.consoles import Tab, add_page, add_tab
from failures.pages.breaker import breaker_panel
from failures.pages.evidence import trip_panel
from failures.pages.groups import activation_panel, setting_panel
from failures.pages.protocol import protocol_page
from failures.pages.protocols import VIEW, protocol_list, protocol_news
from failures.pages.reports import server_panel
from failures.pages.what_if import what_if_page, what_if_panel


def register() -> None:
    add_tab(Tab("protocols", _("Protocols"), "admin:protocols", 60, VIEW))
    add_page("protocols/", protocol_list, "protocols")
    add_page("protocols/news/", protocol_news, "protocol_news")
    add_page("protocols/<uuid:pk>/", protocol_page, "protocol")
    add_page("settings/<slug:key>/what-if/", what_if_page, "setting_what_if")
    panels.register("setting_live", 10, breaker_panel)
    panels.register("setting_whole", 10, what_if_panel)
    panels.register("trip", 10, trip_panel)
    panels.register("server", 10, server_panel)
    panels.register("activation", 10, activation_panel)
    panels.register("setting", 10, setting_panel)
