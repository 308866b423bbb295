from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.contrib.admin import apps as admin_apps
from django.contrib.admin import autodiscover
from django.contrib.admin.checks import check_admin_app
from django.core.checks import CheckMessage, Tags, register
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from console.audit import text


class MaAdminConfig(admin_apps.SimpleAdminConfig):
    """The whole site is one admin site of our own. It loads forms and pages when an address is asked for:
    most processes serve none."""

    default = False
    default_site = "ma_site.admin_site.OperationsSite"

    def ready(self) -> None:
        super().ready()
        register(check_every_form, Tags.admin)


def check_every_form(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Django's own check looks at what is loaded already."""
    autodiscover()
    return check_admin_app(app_configs)


class MaSiteConfig(AppConfig):
    default = True
    name = "ma_site"
    verbose_name = _("Site")

    def ready(self) -> None:
        from ma_site.requests import sign_in  # noqa: F401  # its receivers

        text.ACTIONS.declare(
            {
                "sign_in": _("sign in"),
                "sign_out": _("sign out"),
                "adopt_broker": _("take over the broker"),
            }
        )
        text.DETAILS.declare({"before": _("previous site"), "site": _("site id")})
        declare_people()


def declare_people() -> None:
    """Declares people and their roles, as entries of the audit name them."""
    from django.contrib.auth.models import Group, User

    from console.audit.saves import VERBS, RowKind

    permission = ("content_type__app_label", "codename")
    RowKind("role", Group, _("User groups"), key="name", many={"permissions": permission},
            words={"permissions": permission_words})  # fmt: skip
    RowKind("person", User, _("Users"), key="username", target="user", secret=("password",),
            verbs={**VERBS, "password": pgettext_lazy("what people do", "Set password")},
            left_out=("last_login", "date_joined"), words={"user_permissions": permission_words},
            many={"groups": ("name",), "user_permissions": permission})  # fmt: skip


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
