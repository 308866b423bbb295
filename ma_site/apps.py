from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.contrib.admin import autodiscover
from django.contrib.admin.checks import check_admin_app
from django.core.checks import CheckMessage, Tags, register
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.audit import text
from console.ui.errors import permission_words


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
        from ma_site.scrape import processes  # noqa: F401  # its answer to a hook

        text.ACTIONS.declare(
            {
                "sign_in": _("sign in"),
                "sign_out": _("sign out"),
                "adopt_broker": _("take over the broker"),
                "backup": _("make a backup"),
                "setting.bulk": _("change several settings"),
            }
        )
        text.DETAILS.declare(
            {
                "before": _("previous site"),
                "site": _("site id"),
                "made_at": _("made"),
                "place": _("place"),
                "size": _("bytes"),
                "left_out": _("not included"),
                "stopped": _("seconds stopped"),
            }
        )
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
