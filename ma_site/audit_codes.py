"""Codes of the audit that this app gives to entries, their words, and people with their roles."""

from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, User
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from console.audit import text
from console.audit.saves import VERBS, RowKind

text.ACTIONS.declare(
    {
        "sign_in": _("sign in"),
        "sign_out": _("sign out"),
        "adopt_broker": _("take the broker over"),
    }
)
text.DETAILS.declare({"before": _("site before"), "site": _("site id")})


def permission_words(name: Any) -> str:
    """Returns `app.codename` in the reader's language: the database keeps English words. What the code does
    not know is shown as it is named."""
    app_label, _dot, codename = str(name).partition(".")
    action, _line, model_name = codename.partition("_")
    words = {
        "add": gettext("Can add %(kind)s"),
        "change": gettext("Can change %(kind)s"),
        "delete": gettext("Can delete %(kind)s"),
        "view": gettext("Can view %(kind)s"),
    }
    for model in apps.get_app_config(app_label).get_models() if app_label in apps.app_configs else ():
        options = model._meta
        if options.model_name == model_name and action in words:
            return words[action] % {"kind": options.verbose_name_plural}
        if codename in (own := dict(options.permissions)):
            return str(own[codename])
    return str(name)


PERMISSION = ("content_type__app_label", "codename")
RowKind("role", Group, _("Groups of people"), key="name", many={"permissions": PERMISSION},
        words={"permissions": permission_words})  # fmt: skip
RowKind("person", User, _("People"), key="username", target="user", secret=("password",),
        verbs={**VERBS, "password": pgettext_lazy("what people do", "Set the password")},
        left_out=("last_login", "date_joined"), words={"user_permissions": permission_words},
        many={"groups": ("name",), "user_permissions": PERMISSION})  # fmt: skip
