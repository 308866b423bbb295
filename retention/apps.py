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
                "erase_begun": _("begin of an erasure"),
                "erase": _("erasure of personal data"),
            }
        )
        text.COUNTS.declare(
            {
                "edits": _("edits"),
                "whole bodies": _("whole bodies"),
                "notes": _("notes"),
                "known faults": _("known faults"),
                "takings": _("takings"),
                "reports": _("reports"),
                "waiting messages": _("waiting messages"),
                "recovered": _("recovered"),
                "headlines": _("headlines"),
                "refused records": _("refused records"),
                "conflicts": _("conflicts"),
                "saved filters": _("saved filters"),
                "filters of replays": _("filters of replays"),
            }
        )
        text.DETAILS.declare({"digest": _("digest of the value")})
