"""After enabling, one message may be tried first: one run, one message at a time, until the first success.

It succeeds → the rest is started. It fails → the setting is off again, by the trip that was ended (see
tripping).
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from agents.models import Activation, LaunchSetting
from agents.models.activation import OPEN_ACTIVATIONS
from agents.services.history import note
from agents.services.planning import plan_runs
from agents.services.polling import poll_after_commit


def begins_with_trial(setting: LaunchSetting) -> bool:
    """For an activation that starts now: the first since the setting was enabled, or none before tried to the
    end.

    A standalone agent has no messages to try."""
    chosen = setting.first_tries_one
    wanted = setting.try_one_first if chosen is None else chosen
    if not wanted or not setting.takes_messages:
        return False
    since = Activation.objects.filter(setting=setting, enabling=setting.enablings)
    return not since.filter(trial=False).exists()


def end_trial(activation_id: UUID, now: datetime) -> bool:
    """Whether it was one. A message was handled well: full speed here, and the other servers begin. Not to be
    called by who holds locks of runs: who switches settings locks the activation first.

    Killed before the commit: the next report of the run says it again. After it: `tend` plans what is
    missing.
    """
    with transaction.atomic():
        tried = Activation.objects.filter(pk=activation_id, trial=True, state__in=OPEN_ACTIVATIONS)
        if not tried.update(trial=False):
            return False
        activation = Activation.objects.select_related("setting").get(pk=activation_id)
        note(activation.setting, "trial", "one message", "full speed", now=now, activation=activation)
        poll_after_commit(activation.runs.filter(wanted=True).values_list("server__name", flat=True))
    plan_runs(activation_id, now)
    return True
