"""The navigation of the site: its entries in their order, and who sees them."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from agents.pages import activations, destinations, freezes, groups, servers, trips
from agents.pools.rights import may_anywhere
from alerts.pages import alerts
from console.audit import web as audit
from console.ui.page import Tab, TabGroup
from dlq import rights
from failures.pages import fingerprints, protocols
from insights.pages import run
from ma_site.pages import health, overview
from metrics.pages import timeline
from retention import pages as retention


def _sees_dead_letters(user: object) -> bool:
    return may_anywhere(user, rights.SEE)


NAVIGATION = (
    Tab("overview", _("Overview"), "admin:index", go="o"),
    Tab("alerts", _("Alerts"), "admin:alerts", alerts.VIEW, badge=alerts.badge, go="a"),
    TabGroup(
        _("Dead letters"),
        (
            Tab("dead_letters", _("Queues"), "admin:dead_letters", allowed=_sees_dead_letters, go="d"),
            Tab("messages", _("Messages"), "admin:all_dead_letters", allowed=_sees_dead_letters, go="m"),
            Tab("replays", _("Replays"), "admin:replays", rights.SEE_REPLAYS, go="r"),
            Tab("trash", _("Trash"), "admin:bin", allowed=_sees_dead_letters, go="t"),
        ),
    ),
    TabGroup(
        _("Failures"),
        (
            Tab("fingerprints", _("Error groups"), "admin:fingerprints", fingerprints.VIEW, go="e"),
            Tab("protocols", _("Failure protocols"), "admin:protocols", protocols.VIEW, go="f"),
            Tab("trips", _("Breaker trips"), "admin:trips", trips.VIEW, go="b"),
        ),
    ),
    TabGroup(
        _("Settings"),
        (
            Tab(
                "settings",
                _("Launch settings"),
                "admin:settings",
                overview.VIEW,
                model="agents.launchsetting",
                page="setting",
                key="key",
                go="s",
            ),
            Tab(
                "groups",
                _("Groups"),
                "admin:groups",
                groups.VIEW,
                model="agents.scheduledgroup",
                page="group",
                key="name",
                go="g",
            ),
            Tab(
                "destinations",
                _("Destinations"),
                "admin:destinations",
                destinations.VIEW,
                model="agents.destination",
                page="destination",
                go="n",
            ),
            Tab(
                "activations",
                _("Activations"),
                "admin:activations",
                activations.VIEW,
                model="agents.activation",
                page="activation",
                go="c",
            ),
            Tab(
                "freezes",
                _("Freezes"),
                "admin:freezes",
                freezes.VIEW,
                model="agents.maintenancewindow",
                page="agents_maintenancewindow_change",
                go="z",
            ),
        ),
    ),
    Tab(
        "servers",
        _("Servers"),
        "admin:servers",
        servers.VIEW,
        model="agents.server",
        page="server",
        key="name",
        go="v",
    ),
    TabGroup(
        _("Insights"),
        (
            Tab("timeline", _("Timeline"), "admin:timeline", timeline.VIEW, go="w"),
            Tab("insights", pgettext_lazy("a tab", "Trends"), "admin:insights", run.VIEW, go="i"),
        ),
    ),
    TabGroup(
        _("System"),
        (
            Tab("health", _("Health"), "admin:health", health.VIEW, go="h"),
            Tab("retention", _("Retention"), "admin:retention", retention.VIEW, go="k"),
            Tab("audit", _("Audit log"), "admin:audit", audit.VIEW, go="l"),
            Tab("docs", _("REST API"), "docs", go="p"),
            Tab("records", pgettext_lazy("a tab", "Administration"), "admin:records"),
        ),
    ),
)
