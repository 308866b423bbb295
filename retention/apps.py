from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from console.audit import text


class RetentionConfig(AppConfig):
    name = "retention"
    verbose_name = _("Retention")

    def ready(self) -> None:
        """Declares the words of what entries of the audit hold."""
        text.ACTIONS.declare(
            {
                "retention.apply": _("apply retention now"),
                "erase_begun": _("start erasing personal data"),
                "erase": _("erase personal data"),
            }
        )
        text.COUNTS.declare(
            {
                "edits": _("edits"),
                "whole bodies": _("full bodies"),
                "notes": _("notes"),
                "known faults": _("known errors"),
                "takings": _("assignments"),
                "reports": _("reports"),
                "waiting messages": _("waiting messages"),
                "recovered": _("recovered"),
                "headlines": _("error group titles"),
                "refused records": _("refused records"),
                "conflicts": _("conflicts"),
                "saved filters": _("saved filters"),
                "replay filters": _("replay filters"),
            }
        )
        text.DETAILS.declare({"digest": _("hash of the value")})
