"""Removing a launch setting: decided by a mark in its row, carried out as often as needed.

The mark is a wish that no broker can fulfil (`wanted_hash`): from then on it cannot be enabled, and nobody
makes its queues again. Then go, in this order: the queues, what refers to it (`let_go`: a few rows at a
time, for a few seconds in each turn), the row. A kill before the mark leaves everything as it was; after it,
wherever, the next `tend` goes on from what it finds, because each step does nothing where it was done.
Protocols, letters and replays stay, with the key.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import IntegrityError, transaction
from django.db.models import CASCADE, SET_NULL, ProtectedError, QuerySet
from django.utils.translation import gettext as _

from agents import hooks
from agents.hooks import AT_ONCE
from agents.isolation import isolated
from agents.models import (
    Acknowledgement,
    Activation,
    BreakerTrip,
    GroupMember,
    Interruption,
    LaunchSetting,
    ProvisionState,
    Run,
    Schedule,
    StateChange,
    Window,
)
from agents.provisioning.provision import HELD_FOR
from agents.provisioning.topology import REMOVING, provision_after_commit, store_desired_topology
from agents.reasons import (
    BROKER_AWAY,
    DEAD_LETTERS_HELD,
    GROUPED_MEANWHILE,
    HELD_BACK,
    QUEUES_KEPT,
    SUBSCRIPTION_HOLDS,
)
from agents.schedules.tick import delete_schedule
from agents.state_history import note
from broker.management.queues import find
from broker.management.topology import remove_setting as remove_queues
from broker.port import BrokerError, BrokerUnavailable, Management, ManagementFailed
from console.audit.log import Record, no_record
from console.broker import management
from console.database.storage import let_others_write, raw_delete
from console.operations.refusals import Refused
from console.processes import lock
from contract.names import ahead_queue, dead_letter_queue, hold_queue

log = structlog.get_logger(__name__)

# -- rows that refer to a removed setting --------------------------------------------------------------------
# They are detached or deleted, at most AT_ONCE rows in one transaction, never through the ORM's collector of
# the setting or of its activations: it would read every protocol there is, in one transaction. Each step
# finds what was done before, so whoever continues after a kill begins with the first step again.


# Few of a setting: they go with its row.
WITH_THE_ROW = (GroupMember, Schedule)


def let_go(setting: LaunchSetting) -> Iterator[int]:
    """A step, which is a transaction of its own, each time it is asked for the next one: how many rows it
    touched."""
    for each in hooks.referrers():
        yield from each.of_setting(setting)
    for relation in _relations(SET_NULL):
        yield from _emptied(
            relation.related_model._default_manager.filter(**{relation.field.name: setting}), relation
        )
    windows = Window.objects.filter(schedule__setting=setting)
    # A trip is deleted after the interruptions that speak of it, for which the collector would look.
    for model in (Interruption, StateChange, Acknowledgement):
        yield from _deleted(model._default_manager.filter(setting=setting))
    yield from _deleted(BreakerTrip.objects.filter(setting=setting))
    yield from _deleted(windows)
    yield from _activations(setting)


def anything_left(setting: LaunchSetting) -> bool:
    """Returns whether something came since: asked under the lock of the setting's row, which who adds some
    waits for."""
    return any(
        relation.related_model._default_manager.filter(**{relation.field.name: setting}).exists()
        for relation in (*_relations(SET_NULL, CASCADE), *_registered_relations())
    )


def _all_relations() -> list[Any]:
    return [each for each in LaunchSetting._meta.related_objects if each.related_model not in WITH_THE_ROW]


def _relations(*on_delete: Any) -> list[Any]:
    """Those that an index leads to and nobody registered for. Letters have no such index: they are looked for
    once, when the row goes."""
    registered = {each.model for each in hooks.referrers()}
    found = (each for each in _all_relations() if each.related_model not in registered)
    return [each for each in found if each.field.db_index and each.on_delete in on_delete]


def _registered_relations() -> list[Any]:
    registered = {each.model for each in hooks.referrers() if not each.goes_with_the_row}
    return [each for each in _all_relations() if each.related_model in registered]


def _emptied(rows: QuerySet[Any], relation: Any) -> Iterator[int]:
    while some := _keys(rows):
        yield relation.related_model._default_manager.filter(pk__in=some).update(
            **{relation.field.name: None}
        )


def _deleted(rows: QuerySet[Any]) -> Iterator[int]:
    while some := _keys(rows):
        yield rows.model.objects.filter(pk__in=some).delete()[0]


def _activations(setting: LaunchSetting) -> Iterator[int]:
    while some := _keys(Activation.objects.filter(setting=setting)):
        while runs := _keys(Run.objects.filter(activation__in=some)):
            for each in hooks.referrers():
                yield from each.of_runs(runs)
            yield Run.objects.filter(pk__in=runs).delete()[0]
        yield _without_collector(some)


@transaction.atomic
def _without_collector(activations: Collection[UUID]) -> int:
    """Deletes what has no runs by now. Where one has come since, the database refuses all of it, and the next
    turn tries again."""
    StateChange.objects.filter(activation__in=activations).delete()
    for model in (BreakerTrip, Window):
        model._default_manager.filter(activation__in=activations).update(activation=None)
    return raw_delete(Activation.objects.filter(pk__in=activations))


def _keys(rows: QuerySet[Any]) -> Sequence[Any]:
    return list(rows.order_by().values_list("pk", flat=True)[:AT_ONCE])


# What takes longer is gone on with by the next `tend`: it has other things to do, and who asked waits for an
# answer.
TURN_SECONDS = 5.0


def refusal_by_rows(setting: LaunchSetting) -> Refused | None:
    """Returns why it cannot be removed now, as far as the rows tell, or None."""
    if setting.enabled:
        return Refused(
            "enabled", _("The setting cannot be removed while it is enabled."), _("Disable it first.")
        )
    if setting.hold:
        text = _(
            "The setting cannot be removed: a replay is using its subscription. Wait until the "
            "replay finishes, or cancel it."
        )
        return Refused("subscription_held", text, _("Release the subscription on the page of that replay."))
    if Activation.objects.filter(setting=setting, ended_at=None).exists():
        text = _("The setting cannot be removed: its activation has not ended yet.")
        return Refused("not_ended", text, _("Wait until all its instances have ended."))
    if member := getattr(setting, "membership", None):
        text = _("The setting cannot be removed: it is a member of the group “%(group)s”.") % {
            "group": member.group.name
        }
        return Refused("in_group", text, _("Remove the setting from the group first."))
    if why := next(filter(None, hooks.removal_refused(setting)), None):
        return Refused("awaits_messages", str(why), _("Wait until it ends, or cancel it."))
    return None


def refusal_by_broker(setting: LaunchSetting) -> Refused | None:
    """Returns why the broker keeps it from being removed: what its queues hold must not be lost. Nothing is
    asked for a standalone agent."""
    if not setting.takes_messages:
        return None
    try:
        return _held(management(), setting)
    except BrokerError as error:
        return _broker_refusal(error)


def removal_refusal(setting: LaunchSetting) -> Refused | None:
    return refusal_by_rows(setting) or refusal_by_broker(setting)


def remove_setting(setting: LaunchSetting, by: Any, now: datetime, *, record: Record = no_record) -> bool:
    """Returns whether it is gone already; else `tend` does the rest in a moment. Raises Refused: then nothing
    was removed."""
    if refused := removal_refusal(setting):
        raise refused
    _decide(setting, by, now, record)
    with lock("provision", HELD_FOR) as free:
        gone = free and _carry_out(setting.pk, now, time.monotonic() + TURN_SECONDS)
    return gone


def finish_removals(now: datetime) -> int:
    """What was decided and not carried out yet. Answers how many are gone now."""
    keys = list(LaunchSetting.objects.filter(wanted_hash=REMOVING).values_list("pk", flat=True))
    if not keys:
        return 0
    until = time.monotonic() + TURN_SECONDS
    with lock("provision", HELD_FOR) as free:
        gone = 0
        for pk in keys if free else ():
            with isolated("removals", setting=pk):
                gone += _finished(pk, now, until)
        return gone


def _finished(setting_id: int, now: datetime, until: float) -> bool:
    try:
        return _carry_out(setting_id, now, until)
    except Refused as refused:
        log.warning("setting not removed", setting=setting_id, reason=refused.reason)
        return False


@transaction.atomic
def _decide(setting: LaunchSetting, by: Any, now: datetime, record: Record) -> None:
    """An enabling that came first is seen here, after the wait for its lock; one that comes later finds the
    mark."""
    current = LaunchSetting.objects.select_for_update(of=("self",)).get(pk=setting.pk)
    if refused := refusal_by_rows(current):
        raise refused
    # Taken back, nothing counts as made: whoever takes it back has everything looked at anew.
    values = {"provisioned_hash": "", "provision_state": ProvisionState.PENDING, "provision_problem": ""}
    LaunchSetting.objects.filter(pk=setting.pk).update(wanted_hash=REMOVING, **values)
    note(setting, "setting", "disabled", "removing", now=now, by=by)
    record()
    log.info("setting removal requested", setting=setting.key, by=str(by or ""))


def _carry_out(setting_id: int, now: datetime, until: float) -> bool:
    """Under the lock of provisioning: nobody makes queues meanwhile. `until`: the monotonic instant at which
    the turn is over. Raises Refused, and then takes the mark back."""
    setting = (
        LaunchSetting.objects.filter(pk=setting_id, wanted_hash=REMOVING)
        .select_related("destination")
        .first()
    )
    if setting is None:
        return False
    try:
        _remove_queues(setting)
        return _let_all_go(setting, until) and _remove_row(setting, now)
    except IntegrityError as error:
        # A record of it came at that instant: the step was rolled back.
        log.warning("removal continues later", setting=setting.key, reason=str(error))
        return False
    except BrokerUnavailable as error:
        # It stays decided: the broker was there a moment ago, and half of it may be done.
        log.warning("broker unavailable, removal postponed", setting=setting.key, reason=str(error))
        return False
    except (Refused, BrokerError) as error:
        refused = error if isinstance(error, Refused) else _broker_refusal(error)
        _take_back(setting, now, refused)
        raise refused from error


def _remove_queues(setting: LaunchSetting) -> None:
    """Empty queues only. What is published between the broker's last count and the removal finds a
    subscription that is being removed, as what is published a moment later does."""
    if not setting.takes_messages:
        return
    broker = management()
    if refused := _held(broker, setting):
        raise refused
    remove_queues(broker, setting.key, subscription=_is_ours(broker, setting))


def _held(broker: Management, setting: LaunchSetting) -> Refused | None:
    subscription = (setting.key, SUBSCRIPTION_HOLDS)
    for queue, kind in (
        *([subscription] if _is_ours(broker, setting) else []),
        (ahead_queue(setting.key), SUBSCRIPTION_HOLDS),
        (dead_letter_queue(setting.key), DEAD_LETTERS_HELD),
        (hold_queue(setting.key), HELD_BACK),
    ):
        found = find(broker, "listQueues", queue)
        if found is not None and found["messageCount"] != "0":
            why = kind(queue=queue, n=found["messageCount"])
            return Refused(
                "holds_messages",
                why,
                _("Let the setting process them (replay dead letters first), or delete them on the broker."),
            )
    return None


def _is_ours(broker: Management, setting: LaunchSetting) -> bool:
    """A queue of this name at another address was never made for this setting (then provisioning failed,
    after its dead-letter queue was made)."""
    found = find(broker, "listQueues", setting.key)
    return found is None or found["address"] == setting.subscribed.name


def _let_all_go(setting: LaunchSetting, until: float) -> bool:
    """Returns whether nothing refers to it any more."""
    for _step in let_go(setting):
        if time.monotonic() >= until:
            return False
        let_others_write()
    return True


def _remove_row(setting: LaunchSetting, now: datetime) -> bool:
    """Saved meanwhile: somebody wants it again, so it stays, and its queues are made anew."""
    try:
        with transaction.atomic():
            marked = LaunchSetting.objects.select_for_update(of=("self",))
            current = marked.filter(pk=setting.pk, wanted_hash=REMOVING).first()
            if current is None or anything_left(current):
                return False
            schedule = Schedule.objects.filter(setting=current).first()
            if schedule is not None:
                delete_schedule(schedule, None, now)
            current.delete()
    except ProtectedError as error:
        raise Refused(
            "in_group", GROUPED_MEANWHILE(), _("Remove the setting from the group first.")
        ) from error
    log.info("setting removed", setting=setting.key)
    return True


@transaction.atomic
def _take_back(setting: LaunchSetting, now: datetime, refused: Refused) -> None:
    store_desired_topology(setting)
    provision_after_commit(setting)
    note(setting, "setting", "removing", "disabled", now=now, reason=refused.why)


def _broker_refusal(error: BrokerError) -> Refused:
    if isinstance(error, ManagementFailed):
        why = QUEUES_KEPT(problem=str(error))
        return Refused("broker_refused", why, _("Fix the cause, then try again."))
    return Refused(
        "broker_away", BROKER_AWAY(problem=str(error)), _("Try again when the broker is available.")
    )
