from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AlertsConfig(AppConfig):
    name = "alerts"
    verbose_name = _("Alerts")

    def ready(self) -> None:
        from alerts import (
            agents_hooks,  # noqa: F401 - what is done of a trip, and in place of beat
            audit_codes,  # noqa: F401 - words of what entries hold
        )
