"""Writes the history: one row per transition, in the transaction that makes it."""

from datetime import datetime
from typing import Any

from agents.models import Activation, LaunchSetting, Server, StateChange
from agents.reasons import BY_COMMAND, BY_COMMAND_BECAUSE
from console.reasons import NO_REASON, Reason, said


def note(
    setting: LaunchSetting | None,
    what: str,
    old: str,
    new: str,
    *,
    now: datetime,
    reason: Reason = NO_REASON,
    by: Any = None,
    activation: Activation | None = None,
    server: Server | None = None,
) -> None:
    """`what` is a stable word: setting, activation, run, provision, server (`setting` is then None). `by` is
    the user, None = the MA itself."""
    StateChange.objects.create(
        setting=setting,
        what=what,
        old=old,
        new=new,
        at=now,
        reason=reason,
        by=by if getattr(by, "pk", None) else None,
        activation=activation,
        server=server,
    )


def why_of(by: Any, reason: str) -> Reason:
    """The words of a person. The command line names itself."""
    if by is not None:
        return said(reason)
    return BY_COMMAND_BECAUSE(why=reason) if reason else BY_COMMAND()
