from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MetricsConfig(AppConfig):
    name = "metrics"
    verbose_name = _("Figures over time")

    def ready(self) -> None:
        from failures.hooks import record_kinds
        from metrics.intake import ReportedMinutes

        record_kinds.implement(ReportedMinutes)
