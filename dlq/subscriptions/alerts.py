"""Watches ordered subscriptions that stand still until a person decides: nobody else will try that message
again."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.alerts.deciding import Thresholds
from agents.alerts.kinds import Kind, Observation, register
from agents.models import Severity
from console.ui.amounts import number
from dlq.models.waiting import OPEN_ACTIONS, WaitingAction
from dlq.subscriptions.blocked import blocked_settings

MOST = 2000


def register_kinds() -> None:
    register(WAITS)


def waiting_for_a_person(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Of settings that are on. The message is not named: alerts outlive it."""
    for setting, blocking in blocked_settings(MOST):
        if blocking.blocked.retry_seconds is None:
            facts = {"setting": setting.key, "attempt": blocking.blocked.attempt, "server": blocking.server}
            yield Observation(
                setting.key, 1.0, setting=setting.pk, pools=frozenset([setting.pool_id]), facts=facts
            )


def _stands(facts: Mapping[str, Any], value: float) -> str:
    text = _(
        "“%(key)s” stands still: attempt %(n)s of its first message failed, and only a person has it tried "
        "again."
    )
    return text % {"key": facts["setting"], "n": number(facts["attempt"])}


WAITS = Kind(
    name="waits_for_person",
    label=gettext_lazy("Waits for a person"),
    severity=Severity.BAD,
    # While somebody has it tried again it does not block.
    limits=Thresholds(1.0, 1.0, open_after=timedelta(seconds=60), close_after=timedelta(seconds=30)),
    unit=gettext_lazy("1 while it waits"),
    says=_stands,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "See in its protocols why the message failed. Mend that and have it tried again, or send it to the "
        "dead "
        "letters."
    ),
    url=lambda facts: reverse("admin:waiting", args=[facts["setting"]]),
    observe=waiting_for_a_person,
)


# -- how many messages of an action have come to what --------------------------------------------------------


def counts_of(action: WaitingAction) -> Mapping[str, int]:
    """By fate; counted while it is under way, then kept with it. `missing`: not there any more when it was
    asked."""
    kept = {name: int(count) for name, count in action.counts.items() if isinstance(count, int)}
    if action.state not in OPEN_ACTIONS or action.whole:
        return kept
    rows = action.items.order_by().values_list("fate").annotate(Count("pk"))
    return kept | {fate: int(count) for fate, count in rows}
