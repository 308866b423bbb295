"""The one admin site that is the whole web interface: its index is the operations overview."""

from django.contrib.admin import AdminSite
from django.utils.translation import gettext_lazy as _


class OperationsSite(AdminSite):
    site_title = _("MA")
    site_header = _("Message agents")
    index_title = _("Overview")
    empty_value_display = "—"
