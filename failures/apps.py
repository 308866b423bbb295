from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FailuresConfig(AppConfig):
    name = "failures"
    verbose_name = _("Failures")

    def ready(self) -> None:
        from agents import hooks
        from failures import (
            audit_codes,  # noqa: F401 - words of what entries hold
        )
        from failures.intake.spools import stored_up_to
        from failures.protocols import setting_removal
        from failures.protocols.messages import known_attempts, unresolved

        hooks.known_attempts.implement(known_attempts)
        hooks.unresolved_messages.implement(unresolved)
        hooks.stored_less.implement(stored_up_to)
        hooks.referrers.implement(setting_removal.referrer)
