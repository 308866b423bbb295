"""Texts of the admin that Russian needs in other words: a name in them has no other case than the
nominative."""

from django.utils.translation import gettext_noop as _

TEXTS = (
    _("Add %s"),
    _("Change %s"),
    _("View %s"),
    _("Select %s"),
    _("Select %s to change"),
    _("Select %s to view"),
    _("Add %(name)s"),
)
