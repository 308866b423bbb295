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
        from dlq.dead_letters.masks import masked_for
        from dlq.edit import queries  # noqa: F401 - changes of messages, for the audit
        from dlq.edit import worker as editing
        from dlq.index.causes import protocols_arrived
        from dlq.outcomes.places import places_of
        from dlq.outcomes.settlement import ReplayOutcomes, deaths, handled_well
        from dlq.queues.operations import key_problem
        from dlq.replay.creation import redirect_into
        from failures.hooks import (
            handled_after_return,
            masked_properties,
            message_endings,
            message_places,
            protocols_stored,
            record_kinds,
        )

        rights.register_rights()
        editing.register_edit_hooks()
        hooks.key_taken.implement(key_problem)
        hooks.removal_refused.implement(redirect_into)
        record_kinds.implement(ReplayOutcomes)
        protocols_stored.implement(protocols_arrived)
        message_endings.implement(deaths)
        handled_after_return.implement(handled_well)
        masked_properties.implement(masked_for)
        message_places.implement(places_of)
