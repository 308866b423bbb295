"""What this app itself still needs of protocols that the rule lets go."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from contract.outcomes import Outcome
from failures.known_attempts import LOOK_BACK
from failures.models import FailureProtocol
from failures.retention.keepers import Picked


def attempts_are_counted_since(now: datetime) -> datetime:
    return now - LOOK_BACK


def counted_attempts(picked: Sequence[Picked], now: datetime) -> Collection[UUID]:
    """Protocols of messages whose KMA died lately: what servers are told of their attempts is counted from
    them. A day later they go."""
    since = attempts_are_counted_since(now)
    young = [each for each in picked if each.at >= since and each.message_key and not each.message_key_weak]
    if not young:
        return ()
    keys = {each.message_key for each in young}
    died = FailureProtocol.objects.filter(
        message_key__in=keys, outcome=Outcome.KMA_DIED.value, occurred_at__gte=since
    )
    struck = set(died.order_by().values_list("setting_key", "message_key"))
    return {each.id for each in young if (each.setting_key, each.message_key) in struck}
