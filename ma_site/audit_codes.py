"""Codes of the audit that this app gives to entries, and their words."""

from django.utils.translation import gettext_lazy as _

from console.audit import text

text.ACTIONS.declare(
    {
        "sign_in": _("sign in"),
        "sign_out": _("sign out"),
        "adopt_broker": _("take the broker over"),
    }
)
text.DETAILS.declare({"before": _("site before"), "site": _("site id")})
