"""Codes of the audit that this app gives to entries, and their words."""

from django.utils.translation import gettext_lazy as _

from console.audit import text

text.ACTIONS.declare({"pool_agents": _("change which agents a pool allows")})
text.COUNTS.declare(
    {
        "agents listed": _("agents listed"),
        "settings withheld": _("settings no longer sent to their servers"),
    }
)
text.DETAILS.declare(
    {
        "added": _("added"),
        "allows": _("allows"),
        "group": _("group"),
        "member": _("member"),
        "message": _("message"),
        "removed": _("removed"),
        "ticket": _("ticket"),
        "try_one_first": _("Try one message first"),
    }
)
text.VALUES.declare(
    {"allows": {"every": _("every agent of its servers"), "listed": _("only the listed agents")}}
)
