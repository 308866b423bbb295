"""The message that blocks an ordered subscription, as its run tells, and giving it up.

A wish is a number of the setting with the digest of the key and the attempt that the person saw. Killed
before the commit: nothing was asked. After it: servers are told with every heartbeat; whoever holds that
message after that attempt rejects it, and to everybody else the wish means nothing, now or later.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from agents.liveness import poll_after_commit
from agents.models import LaunchSetting, Run
from agents.state_history import note
from console.operations.operation import Act
from console.operations.refusals import Refused
from console.reasons import said
from contract.messages import BlockedMessage
from contract.wire import load


@dataclass(frozen=True, slots=True)
class Blocking:
    """`told_at`: when its server said so last."""

    blocked: BlockedMessage
    server: str
    told_at: datetime | None

    @property
    def mark(self) -> str:
        """Marks what a person sees: another attempt of it is another one."""
        return mark_of(self.blocked)


def mark_of(blocked: BlockedMessage) -> str:
    return f"{blocked.attempt}:{blocked.digest}"


def blocking_of(setting: LaunchSetting) -> Blocking | None:
    """What was told last, where several servers tell of one: the broker feeds one, so the others tell what
    was."""
    if not (setting.ordered and setting.enabled):
        return None
    return next((blocking for _pk, blocking in _blocked_of(Q(activation__setting=setting))), None)


def blocked_settings(most: int) -> list[tuple[LaunchSetting, Blocking]]:
    """Returns those of all settings, as `blocking_of` does; at most so many."""
    latest: dict[int, Blocking] = {}
    for pk, blocking in _blocked_of(Q(activation__setting__ordered=True, activation__setting__enabled=True)):
        latest.setdefault(pk, blocking)
    settings = LaunchSetting.objects.filter(pk__in=list(latest)[:most]).order_by("key")
    return [(setting, latest[setting.pk]) for setting in settings]


def _blocked_of(which: Q) -> Iterator[tuple[int, Blocking]]:
    """(setting, what one of its runs told), what was told last first."""
    runs = Run.objects.filter(which, closed_at=None, blocked__isnull=False)
    runs = runs.select_related("server", "activation")
    for run in runs.order_by(F("reported_at").desc(nulls_last=True), "-pk"):
        blocked = load(BlockedMessage, run.blocked)
        yield run.activation.setting_id, Blocking(blocked, run.server.name, run.reported_at)


def give_up_blocked(setting: LaunchSetting, seen: str, act: Act) -> None:
    """Wants the message with this mark among the dead letters. What is written down is the wish: whether it
    is dead its protocol and its dead letter tell. Raises Refused."""
    blocking = blocking_of(setting)
    if blocking is None or blocking.mark != seen:
        raise Refused(
            "over",
            _("It does not block any more, or was tried again meanwhile."),
            _("Look again, and decide by what you see then."),
        )
    digest, attempt = blocking.blocked.digest, blocking.blocked.attempt
    with transaction.atomic():
        LaunchSetting.objects.filter(pk=setting.pk).update(
            give_ups_asked=F("give_ups_asked") + 1, give_up_digest=digest, give_up_attempt=attempt
        )
        note(setting, "run", "", "given up", now=act.now, by=act.by, reason=said(act.reason))
        act.record(digest=digest, server=blocking.server)
        poll_after_commit(setting.pool.servers.values_list("name", flat=True))
