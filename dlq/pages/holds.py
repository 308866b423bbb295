"""Describes that a replay holds a subscription, wherever a page shows that subscription: which replay, since
when, until when."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.pools.rights import may
from agents.provisioning.queue_counts import message_count
from console.ui.page import Panel, link
from contract.names import ahead_queue
from dlq import rights
from dlq.models import HoldState, JobState, ReplayJob


@dataclass(frozen=True, slots=True)
class HeldSubscription:
    """`replay` is the begin of its id; `url` its page, empty for who may not see it. `ends_at` None: it holds
    the subscription no longer than this takes."""

    key: str
    replay: str
    url: str
    since: datetime | None
    ends_at: datetime | None
    paused: bool

    @property
    def ending(self) -> bool:
        return self.ends_at is None


def held_subscriptions(settings: Iterable[LaunchSetting], user: Any) -> dict[str, HeldSubscription]:
    """Returns them by setting key. One query, where one is held at all."""
    holders = {setting.held_by: setting.key for setting in settings if setting.held_by}
    if not holders:
        return {}
    jobs = ReplayJob.objects.filter(pk__in=holders).select_related("setting__pool")
    return {holders[job.pk]: _held(holders[job.pk], job, user) for job in jobs}


def held(setting: LaunchSetting | None, user: Any) -> HeldSubscription | None:
    return held_subscriptions([setting], user).get(setting.key) if setting is not None else None


def _held(key: str, job: ReplayJob, user: Any) -> HeldSubscription:
    sees = user.has_perm(rights.SEE_REPLAYS) or (
        job.setting is not None and may(user, rights.SEE, job.setting)
    )
    return HeldSubscription(
        key=key,
        replay=str(job.pk)[:8],
        url=link("replay", job.pk) if sees else "",
        since=job.held_at,
        ends_at=job.hold_until if job.hold != HoldState.ENDING else None,
        paused=job.state == JobState.PAUSED,
    )


def note_of_setting(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    found = held(setting, request.user)
    return {"title": "", "template": "dlq/held.html", "context": {"held": found}} if found else None


# -- on the page of the replay that holds it -----------------------------------------------------------------


def how_far(job: ReplayJob) -> str:
    """Empty where it holds nothing yet, or no longer."""
    if job.held_at is None:
        return ""
    return {
        HoldState.WANTED.value: _(
            "The subscription of %(key)s is being put on hold. Messages are moved once its "
            "consumers have closed."
        ),
        HoldState.HELD.value: _(
            "The subscription of %(key)s is on hold. The waiting messages are processed after the moved ones."
        ),
        HoldState.ENDING.value: _(
            "The subscription of %(key)s is being released. Unprocessed messages are placed after "
            "the waiting messages."
        ),
    }.get(job.hold, "") % {"key": job.target_key}


def ahead(job: ReplayJob) -> int | None:
    """Returns how many lie ahead still, as the broker counts them; None: it does not tell, or nothing is
    held."""
    if job.held_at is None or job.hold not in (HoldState.HELD, HoldState.ENDING):
        return None
    return message_count(ahead_queue(job.target_key))
