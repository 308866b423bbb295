from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DlqConfig(AppConfig):
    name = "dlq"
    verbose_name = _("Dead letters")

    def ready(self) -> None:
        from agents import hooks
        from dlq import (
            audit_codes,  # noqa: F401 - words of what entries hold
            rights,
            tasks,  # noqa: F401 - workers of its jobs
        )
        from dlq.edit import worker as editing
        from dlq.index.causes import protocols_arrived
        from dlq.outcomes.join import ReplayOutcomes, deaths, handled_well
        from dlq.queues.foreign import key_problem
        from dlq.retention import aging, letter_ages
        from dlq.retention.aging import (
            before_the_index,
            dead_letters_keep_nothing_before,
            indexed_before,
            of_dead_letters,
        )
        from failures.hooks import protocols_stored, record_kinds
        from failures.protocols.messages import register_endings, register_returned
        from failures.retention import aged, counts, keepers, turns
        from failures.retention.activations import register_referred

        rights.register()
        editing.register()
        hooks.key_taken.implement(key_problem)
        record_kinds.implement(ReplayOutcomes)
        protocols_stored.implement(protocols_arrived)
        register_endings(deaths)
        register_returned(handled_well)
        keepers.register("index", before_the_index, indexed_before)
        keepers.register("dead", of_dead_letters, dead_letters_keep_nothing_before)
        register_referred(aging.referred_activations)
        counts.register_referred(aging.referred_fingerprints)
        turns.register(30, aging.REPLAYS, aging.forget_old_replays)
        turns.register(34, letter_ages.ROWS, letter_ages.delete_old_rows)
        turns.register(35, letter_ages.BODIES, letter_ages.delete_old_bodies)
        turns.register(36, letter_ages.EDITS, letter_ages.delete_old_copies)
        aged.register_foreseer(letter_ages.foresee)
        turns.register(40, aging.AUDIT, aging.forget_old_audit)
