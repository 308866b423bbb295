"""Every few seconds: what time alone changes. Each part may run twice and in any process."""

from datetime import datetime

import structlog

from agents.services.closing import lose_unreachable_runs
from agents.services.duty import expire_duties
from agents.services.endings import end_activations
from agents.services.groups import advance_groups
from agents.services.notices import ask_if_due
from agents.services.pauses import end_pauses
from agents.services.planning import plan_open_activations
from agents.services.provisioning import provision_due
from agents.services.schedules import tend_schedules
from agents.services.setting_removal import finish_removals
from agents.services.signs import sign_of_life
from agents.services.tripping import evaluate_open

log = structlog.get_logger(__name__)


def tend(now: datetime) -> None:
    """Takes over from silent servers, starts on those that joined, ends what is over, makes what is still missing."""
    # beat asked for this and a worker does it: both are alive.
    sign_of_life("beat", now)
    # Before anything is planned: what is given up must not be taken up elsewhere.
    tripped = evaluate_open(now)
    expire_duties(now)
    end_pauses(now)
    changed = plan_open_activations(now)
    lost = lose_unreachable_runs(now)
    ended = end_activations(now)
    if tripped or changed or lost or ended:
        log.info("tended", tripped=tripped, changed=changed, lost=lost, ended=ended)
    ask_if_due(now)
    advance_groups(now)
    tend_schedules(now)
    finish_removals(now)
    provision_due(now)
