from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from console.audit import text


class InsightsConfig(AppConfig):
    name = "insights"
    verbose_name = _("Insights")

    def ready(self) -> None:
        """Declares the words of what entries of the audit hold."""
        text.ACTIONS.declare({"archive.verify": _("verify the archive")})
        text.COUNTS.declare({"blocks": _("blocks")})
        text.DETAILS.declare({"anew": _("recompute everything"), "day": _("day"), "jobs": _("jobs")})
