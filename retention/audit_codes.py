"""Codes of the audit that this app gives to entries, and their words."""

from django.utils.translation import gettext_lazy as _

from console.audit import text

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
