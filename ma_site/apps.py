from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.utils.translation import gettext_lazy as _


class MaAdminConfig(admin_apps.AdminConfig):
    """The whole site is one admin site of our own."""

    default = False
    default_site = "ma_site.admin_site.OperationsSite"


class MaSiteConfig(AppConfig):
    default = True
    name = "ma_site"
    verbose_name = _("Site")

    def ready(self) -> None:
        from ma_site import (
            component_alerts,
            sign_in,  # noqa: F401  # its receivers
        )
        from ma_site.pages import urls

        urls.register()
        component_alerts.register_kinds()
