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
        from failures.finding import meaning
        from failures.intake.spools import stored_up_to
        from failures.protocols import referrer
        from failures.protocols.messages import known_attempts, unresolved
        from failures.retention import activations, aged, counts, keepers, turns
        from failures.retention.keepers import attempts_are_counted_since, counted_attempts

        meaning.register()
        hooks.known_attempts.implement(known_attempts)
        hooks.unresolved_messages.implement(unresolved)
        hooks.stored_less.implement(stored_up_to)
        hooks.referrers.implement(referrer.referrer)
        keepers.register("attempts", counted_attempts, attempts_are_counted_since)
        turns.register(10, activations.RUNS, activations.old_runs)
        turns.register(20, activations.ACTIVATIONS, activations.old_activations)
        turns.register(22, counts.GROUPS, counts.old_groups)
        turns.register(24, counts.KINDS, counts.old_kinds)
        for order, each in enumerate(aged.AGED, 50):
            turns.register(order, each.what, each.forget)
