"""Codes of the audit that this app gives to entries, and their words."""

from django.utils.translation import gettext_lazy as _

from console.audit import text

text.ACTIONS.declare({"archive.verify": _("read the archive again")})
text.COUNTS.declare({"blocks": _("blocks")})
text.DETAILS.declare(
    {
        "anew": _("everything anew"),
        "day": _("day"),
        "jobs": _("jobs"),
    }
)
