"""Codes of the audit that this app gives to entries, and their words."""

from django.utils.translation import gettext_lazy as _

from console.audit import text

text.ACTIONS.declare({"export_protocols": _("export of protocols")})
text.COUNTS.declare({"protocols": _("protocols")})
text.DETAILS.declare({"file": _("kind of file"), "query": _("filter")})
