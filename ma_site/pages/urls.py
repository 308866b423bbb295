"""Registers the pages of the site itself."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

import agents.urls
import alerts.pages.urls
import console.urls
import dlq.pages.urls
import failures.pages.urls
import insights.pages.urls
import retention.pages
from console.ui.page import Tab, add_page, add_tab
from ma_site.pages import health, overview


def register() -> None:
    add_tab(Tab("overview", _("Overview"), "admin:index", 10))
    add_tab(Tab("settings", _("Settings"), "admin:settings", 20, overview.VIEW))
    add_tab(Tab("health", _("Health"), "admin:health", 80, health.VIEW))
    add_tab(Tab("docs", _("API"), "docs", 90))
    add_tab(Tab("records", pgettext_lazy("a tab", "Administration"), "admin:records", 100, apart=True))
    add_page("settings/", overview.setting_list, "settings")
    add_page("health/", health.health_page, "health")


# -- registers every page and form of the site, once ---------------------------------------------------------
# The addresses need them; processes without addresses do not.


# In the order of their addresses: the first that fits is taken.
PAGES = (
    console.urls,
    agents.urls,
    failures.pages.urls,
    dlq.pages.urls,
    alerts.pages.urls,
    retention.pages,
    insights.pages.urls,
)


def register_pages() -> None:
    for pages in PAGES:
        pages.register()
    register()
    admin.autodiscover()
