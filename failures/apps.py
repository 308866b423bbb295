from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FailuresConfig(AppConfig):
    name = "failures"
    verbose_name = _("Failures")
