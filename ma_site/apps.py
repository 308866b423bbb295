from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.contrib.admin import autodiscover
from django.contrib.admin.checks import check_admin_app
from django.core.checks import CheckMessage, Tags, register
from django.utils.translation import gettext_lazy as _


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
        from ma_site import (
            audit_codes,  # noqa: F401  # words of what entries hold
        )
        from ma_site.requests import sign_in  # noqa: F401  # its receivers
