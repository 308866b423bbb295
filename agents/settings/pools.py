"""Saving a pool. Its list of allowed agents decides which of its settings servers are sent.

Row, history, audit and the ends of what may not run any more are one transaction: killed before its commit
nothing has changed, after it every server leaves the runs out at its next heartbeat
(`queries.withheld_runs`), which the KMAs are asked to make at once. A setting that is saved at the same
moment may still come together with an agent that is not allowed: it is neither enabled nor sent.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from agents.activations.end import end_activations, set_ending
from agents.activations.rules.outcome import runs_out
from agents.liveness import poll_after_commit
from agents.models import Activation, Ending, LaunchSetting, Pool, Server
from agents.models.activation import OPEN_ACTIVATIONS
from agents.models.pool import allows, refused_by
from agents.reasons import NOT_ALLOWED_ANY_MORE
from agents.state_history import note

CHANGE = "agents.change_pool"


@dataclass(frozen=True, slots=True)
class Affected:
    """Keys of the settings of a pool that a list does not allow."""

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Returns the counts for the audit."""
        return {"settings withheld": len(self.enabled)} if self.enabled else {}


def affected_by(pool: Pool, allowed: Collection[str] | None) -> Affected:
    """Those of the pool that this list would keep from running, by key."""
    rows = list(
        LaunchSetting.objects.filter(pool=pool.pk).order_by("key").values_list("key", "agent", "enabled")
    )
    refused = refused_by(allowed, {agent for _key, agent, _enabled in rows})
    return Affected(
        enabled=tuple(key for key, agent, enabled in rows if agent in refused and enabled),
        disabled=tuple(key for key, agent, enabled in rows if agent in refused and not enabled),
    )


def check_allowing(user: Any, pool: Pool, wanted: Collection[str] | None) -> None:
    """Raises ValidationError. The list bounds what people run who edit settings: no right in the pool is
    enough to change it."""
    stored = Pool.objects.filter(pk=pool.pk).first() if pool.pk else None
    if stored is None or stored.allowlist == wanted or user.has_perm(CHANGE):
        return
    text = _(
        "You cannot change the allowed agents of a pool: you do not have the permission “Can "
        "change pool”. Ask someone who has it."
    )
    raise ValidationError({"allowed_agents": ValidationError(text, code="not_yours")})


@transaction.atomic
def save_pool(pool: Pool, by: Any, now: datetime, servers: Sequence[Server] | None = None) -> Affected:
    """`servers`: those that it is to have; None leaves them. Answers which settings the new list keeps from
    running and the old one did not. The lock lets two changes of the list follow each other."""
    stored = Pool.objects.select_for_update(no_key=True).filter(pk=pool.pk).first() if pool.pk else None
    pool.save()
    if servers is not None:
        pool.servers.set(servers)
    poll_after_commit(pool.servers.values_list("name", flat=True))
    before = stored.allowlist if stored else None
    if before == pool.allowlist:
        return Affected()
    return _note_list(pool, before, by, now)


def _note_list(pool: Pool, before: list[str] | None, by: Any, now: datetime) -> Affected:
    allowed, kept = [], []
    for setting in LaunchSetting.objects.filter(pool=pool.pk).order_by("pk"):
        was, is_now = allows(before, setting.agent), allows(pool.allowlist, setting.agent)
        if was and not is_now:
            kept.append(setting)
            note(setting, "agent", "allowed", "not_allowed", now=now, by=by)
        elif is_now and not was:
            allowed.append(setting)
            note(setting, "agent", "not_allowed", "allowed", now=now, by=by)
    affected = Affected(
        enabled=tuple(sorted(setting.key for setting in kept if setting.enabled)),
        disabled=tuple(sorted(setting.key for setting in kept if not setting.enabled)),
    )
    _end_what_would_end_itself([setting for setting in kept if setting.enabled], by, now)
    return affected


def _end_what_would_end_itself(settings: Sequence[LaunchSetting], by: Any, now: datetime) -> None:
    """A run that is left out is stopped by its KMA and closed. Of a message agent that runs as soon as
    possible a new one is wanted then, and waits until it is allowed. Of any other setting the end would pass
    for a run that was done: its activation is stopped, as by a person."""
    for setting in settings:
        if not runs_out(setting.kind, setting.timing):
            continue
        for activation in Activation.objects.filter(setting=setting, state__in=OPEN_ACTIVATIONS, ending=""):
            set_ending(activation, Ending.STOPPED, now, by=by, reason=NOT_ALLOWED_ANY_MORE())
            _end_after_commit(activation, now)


def _end_after_commit(activation: Activation, now: datetime) -> None:
    transaction.on_commit(lambda: end_activations(now, [activation.pk]), robust=True)
