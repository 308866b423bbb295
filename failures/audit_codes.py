"""Codes of the audit that this app gives to entries, and their words."""

from django.utils.translation import gettext_lazy as _

from console.audit import text
from failures.protocols.exporting import EXPORT

text.ACTIONS.declare(
    {
        EXPORT: _("export of protocols"),
    }
)
text.COUNTS.declare({"protocols": _("protocols")})
text.DETAILS.declare(
    {
        "fields": _("fields"),
        "file": _("kind of file"),
        "in_setting": _("setting"),
        "other": _("the other fingerprint"),
        "query": _("filter"),
        "since": _("since"),
        "version": _("version"),
    }
)
