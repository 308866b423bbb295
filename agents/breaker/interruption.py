"""A KMA gave a run up: stored as it said it, and the run is off on that server until a person lets it go
on: a new run with a higher epoch, its counts at 0."""

from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from agents.activations.launch import end_trial
from agents.activations.switch import sending_refusal
from agents.breaker.trip import evaluate_trip
from agents.freezes.held import freeze_refusal
from agents.liveness import poll_after_commit
from agents.models import (
    Activation,
    BreakerTrip,
    Duty,
    Interruption,
    LaunchSetting,
    Run,
    RunPhase,
    Server,
    ServerStop,
)
from agents.models.activation import OPEN_ACTIVATIONS
from agents.reasons import INTERRUPTED, RESUMED
from agents.state_history import note
from console.operations.refusals import Refused
from contract import records
from contract.breaker import TripReason
from contract.typed import storable

log = structlog.get_logger(__name__)


def accept_interruption(
    server: Server, record_id: UUID, content: records.Interruption, now: datetime
) -> bool:
    """Returns whether the run is given up by it: one of an old epoch is stored and has no effect. Called
    inside the intake's transaction; a record that is here already changes nothing.

    What follows for the setting is decided after the commit, when what another server reported at the same
    instant can be seen: of two that commit together the later sees both. A kill between is made good by the
    next `tend`.
    """
    if Interruption.objects.filter(pk=record_id).exists():
        return False
    setting = LaunchSetting.objects.filter(key=content.run.setting).first()
    if setting is None:
        log.info("interruption of a deleted setting ignored", setting=content.run.setting, server=server.name)
        return False
    runs = Run.objects.filter(activation=content.run.activation, activation__setting=setting, server=server)
    run = runs.select_related("activation__setting", "server").filter(epoch=content.run.epoch).first()
    # The row comes first: it shares the setting's row before a run is locked, as everybody does.
    row = Interruption.objects.create(
        id=record_id,
        setting=setting,
        run=run,
        server=server,
        effective=False,
        received_at=now,
        **interruption_columns(content),
    )
    effective = run is not None and (_give_up(run, content, now) or _counted_already(row, run))
    if run is not None and effective:
        Interruption.objects.filter(pk=row.pk).update(effective=True)
        # What it gave up with; its last handlers go on counting, and one that ends well begins anew.
        given_up = Run.objects.filter(pk=run.pk, state=RunPhase.INTERRUPTED)
        given_up.update(same_type=row.same_type, same_count=row.same_count, any_count=row.any_count)
    return effective


def interruption_columns(content: records.Interruption) -> dict[str, Any]:
    """Returns what the row says of what its KMA said."""
    return {
        "activation_uuid": content.run.activation,
        "epoch": content.run.epoch,
        "reason": content.reason,
        "limit_m": content.max_failures,
        "same_type": storable(content.counts.same_type)[:255],
        "same_count": content.counts.same,
        "any_count": content.counts.any,
        "evidence": [str(record) for record in content.evidence],
        "occurred_at": content.occurred_at,
    }


def _give_up(run: Run, content: records.Interruption, now: datetime) -> bool:
    """Returns whether the run is interrupted by this: it must be the newest on its server, of an open
    activation."""
    activation = run.activation
    newer = Run.objects.filter(activation=activation, server=run.server_id, epoch__gt=run.epoch)
    if activation.state not in OPEN_ACTIVATIONS or newer.exists():
        return False
    if content.reason != TripReason.TRIAL.value:
        # A run that tries one message first can give up for another reason only after that message went well.
        transaction.on_commit(lambda: end_trial(activation.pk, now), robust=True)
    if mark_interrupted(run, now):
        note_interrupted(run, content.counts, now)
    elif not Run.objects.filter(pk=run.pk, state=RunPhase.INTERRUPTED).exists():
        return False  # declared lost meanwhile
    return True


def mark_interrupted(run: Run, now: datetime) -> bool:
    """Returns whether it was not so before. A lost run stays lost: it may be wanted elsewhere already."""
    marked = Run.objects.filter(pk=run.pk).exclude(state__in=(RunPhase.LOST, RunPhase.INTERRUPTED))
    if not marked.update(state=RunPhase.INTERRUPTED, wanted=False):
        return False
    activation = run.activation_id
    transaction.on_commit(lambda: evaluate_trip(activation, now), robust=True)
    return True


def note_interrupted(run: Run, counts: records.BreakerCounts, now: datetime) -> None:
    reason = INTERRUPTED(n=run.epoch, same=counts.same, type=counts.same_type, any=counts.any)
    note(
        run.activation.setting,
        "run",
        "wanted" if run.wanted else "not wanted",
        "interrupted",
        now=now,
        reason=reason,
        activation=run.activation,
        server=run.server,
    )


def _counted_already(row: Interruption, run: Run) -> bool:
    """A heartbeat told of it before, and the trip of the activation counted the run: this is its evidence."""
    trip = BreakerTrip.objects.filter(activation=run.activation_id).order_by("-at", "-id").first()
    if trip is None or run.server.name not in trip.quorum.get("interrupted", ()):
        return False
    Interruption.objects.filter(pk=row.pk).update(trip=trip)
    BreakerTrip.objects.filter(pk=trip.pk, exception_type="").update(exception_type=row.same_type)
    return True


def resume_on_server(setting: LaunchSetting, server: Server, by: Any, now: datetime) -> Run:
    """The new run. Raises Refused.

    The lock of the setting keeps a trip out, which begins with the same lock, and the one of the activation a
    planner: of two that resume at once the second finds nothing interrupted. The KMA's old run may still be
    finishing its last handlers: that is another epoch. Killed before the commit nothing is resumed; after it,
    the KMA polls.
    """
    with transaction.atomic():
        current = LaunchSetting.objects.select_for_update(no_key=True).get(pk=setting.pk)
        open_ones = Activation.objects.select_for_update(no_key=True).filter(
            setting=current, state__in=OPEN_ACTIVATIONS, ending=""
        )
        activation = open_ones.first()
        if not current.enabled or activation is None:
            raise Refused(
                "not_running",
                _("The setting is not running."),
                _("Enable the setting to start it on all servers."),
            )
        if refused := freeze_refusal([current.pool_id], now) or _refusal(current, activation, server):
            raise refused
        epoch = activation.last_epoch + 1
        Activation.objects.filter(pk=activation.pk).update(last_epoch=epoch)
        run = Run.objects.create(activation=activation, server=server, epoch=epoch, created_at=now)
        note(
            current, "run", "interrupted", "wanted", now=now, by=by, reason=RESUMED(n=epoch),
            activation=activation, server=server,
        )  # fmt: skip
        poll_after_commit([server.name])
    return run


def _refusal(setting: LaunchSetting, activation: Activation, server: Server) -> Refused | None:
    newest = Run.objects.filter(activation=activation, server=server).order_by("-epoch").first()
    facts = {"server": server.name, "pool": setting.pool.name}
    if newest is None or newest.state != RunPhase.INTERRUPTED:
        return Refused(
            "not_interrupted",
            _("The setting is not interrupted on %(server)s, or someone has already resumed it.") % facts,
            _("Check the instances of the activation."),
        )
    if not setting.pool.servers.filter(pk=server.pk).exists():
        return Refused(
            "not_in_pool",
            _("%(server)s is no longer in the pool “%(pool)s”.") % facts,
            _("Add the server to the pool first."),
        )
    if server.duty != Duty.ACTIVE:
        return Refused(
            "not_in_service",
            _("%(server)s is cordoned or draining: no new instances start on it.") % facts,
            _("Uncordon the server first."),
        )
    if ServerStop.objects.filter(setting=setting, server=server).exists():
        return Refused(
            "stopped_there",
            _("The setting cannot be resumed: it is stopped on %(server)s.") % facts,
            _("Start it on this server first."),
        )
    return sending_refusal(setting)
