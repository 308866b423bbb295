from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RetentionConfig(AppConfig):
    name = "retention"
    verbose_name = _("Retention")

    def ready(self) -> None:
        from retention import audit_codes  # noqa: F401 - words of what entries hold
