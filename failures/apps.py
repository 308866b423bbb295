from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from console.audit import text


class FailuresConfig(AppConfig):
    name = "failures"
    verbose_name = _("Failures")

    def ready(self) -> None:
        from agents import hooks
        from failures.intake.spools import stored_up_to
        from failures.protocols import setting_removal
        from failures.protocols.exporting import EXPORT
        from failures.protocols.messages import known_attempts, unresolved

        hooks.known_attempts.implement(known_attempts)
        hooks.unresolved_messages.implement(unresolved)
        hooks.stored_less.implement(stored_up_to)
        hooks.referrers.implement(setting_removal.referrer)
        text.ACTIONS.declare({EXPORT: _("failure export")})
        declare_words()


def declare_words() -> None:
    """Declares the words of what entries of the audit hold."""
    text.COUNTS.declare({"protocols": _("failure protocols")})
    text.DETAILS.declare(
        {
            "fields": _("fields"),
            "file": _("file type"),
            "in_setting": _("setting"),
            "other": _("other fingerprint"),
            "query": _("filter"),
            "since": _("since"),
            "version": _("version"),
        }
    )
