"""What a person asks for: the same for pages, REST and the command line. Who may, then `asking.ask` writes it
down."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.services.rights import may, missing
from console.audit.log import attempt
from dlq import rights
from dlq.models.waiting import WaitingAction
from dlq.waiting.asking import WaitingRefused, ask, stop


class NotAllowed(WaitingRefused):
    """This person may not; the broker was not asked."""


def may_look(user: Any, setting: LaunchSetting) -> bool:
    return may(user, rights.SEE, setting) or may(user, rights.WAITING, setting)


def why_not(user: Any, setting: LaunchSetting) -> str:
    """Why this person may do nothing with waiting messages of the setting; empty where they may."""
    return "" if may(user, rights.WAITING, setting) else missing(rights.WAITING, setting.pool.name)


def begin(
    setting: LaunchSetting,
    kind: str,
    *,
    part: str,
    numbers: Collection[int] | None,
    by: Any,
    now: datetime,
    reason: str = "",
    most: int | None = None,
) -> WaitingAction:
    """As `asking.ask`. Raises NotAllowed and WaitingRefused, after an entry in the audit; BrokerError."""
    with attempt(f"waiting_{kind}", by=by, target=f"setting:{setting.key}", setting_key=setting.key):
        check(by, setting)
        return ask(setting, kind, part=part, numbers=numbers, by=by, now=now, reason=reason, most=most)


def end(action: WaitingAction, *, by: Any, now: datetime) -> None:
    """Raises NotAllowed, WaitingRefused, after an entry in the audit."""
    with attempt("waiting_stop", by=by, target=f"waiting:{action.pk}", setting_key=action.setting_key):
        if action.setting is None:
            raise WaitingRefused("over", _("Its setting is gone."))
        check(by, action.setting)
        stop(action, by=by, now=now)


def check(by: Any, setting: LaunchSetting) -> None:
    """Raises NotAllowed."""
    if why := why_not(by, setting):
        raise NotAllowed("permission_denied", why, _("Ask an administrator for the permission."))
