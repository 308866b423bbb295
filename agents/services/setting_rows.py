"""What refers to a setting that is being removed: let go or deleted, at most AT_ONCE rows in one transaction.

Never through the ORM's collector of the setting or of its activations: it would look through every protocol
there is, in one transaction. What was done is found done, so whoever goes on after a kill begins with the
first step again.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import CASCADE, SET_NULL, QuerySet

from agents import referrers
from agents.models import (
    Acknowledgement,
    Activation,
    BreakerTrip,
    GroupMember,
    Interruption,
    LaunchSetting,
    Notice,
    NoticeTarget,
    Run,
    Schedule,
    StateChange,
    Window,
)
from agents.referrers import AT_ONCE

# Few of a setting: they go with its row.
WITH_THE_ROW = (GroupMember, NoticeTarget, Schedule)


def let_go(setting: LaunchSetting) -> Iterator[int]:
    """A step, which is a transaction of its own, each time it is asked for the next one: how many rows it
    touched."""
    for each in referrers.registered():
        yield from each.of_setting(setting)
    for relation in _relations(SET_NULL):
        yield from _emptied(
            relation.related_model._default_manager.filter(**{relation.field.name: setting}), relation
        )
    yield from _notices(setting)
    windows = Window.objects.filter(schedule__setting=setting)
    # A trip is deleted after the interruptions that speak of it, for which the collector would look.
    for model in (Interruption, StateChange, Acknowledgement):
        yield from _deleted(model._default_manager.filter(setting=setting))
    yield from _deleted(BreakerTrip.objects.filter(setting=setting))
    yield from _deleted(windows)
    yield from _activations(setting)


def anything_left(setting: LaunchSetting) -> bool:
    """Whether something came since: asked under the lock of the setting's row, which who adds some waits
    for."""
    return any(
        relation.related_model._default_manager.filter(**{relation.field.name: setting}).exists()
        for relation in (*_relations(SET_NULL, CASCADE), *_registered_relations())
    )


def _all_relations() -> list[Any]:
    return [each for each in LaunchSetting._meta.related_objects if each.related_model not in WITH_THE_ROW]


def _relations(*on_delete: Any) -> list[Any]:
    """Those that an index leads to and nobody registered for. Letters have no such index: they are looked for
    once, when the row goes."""
    registered = {each.model for each in referrers.registered()}
    found = (each for each in _all_relations() if each.related_model not in registered)
    return [each for each in found if each.field.db_index and each.on_delete in on_delete]


def _registered_relations() -> list[Any]:
    registered = {each.model for each in referrers.registered()}
    return [each for each in _all_relations() if each.related_model in registered]


def _notices(setting: LaunchSetting) -> Iterator[int]:
    """They stay, with the address; the targets go with the row."""
    rows = Notice.objects.filter(target__setting=setting)
    while some := _keys(rows):
        yield Notice.objects.filter(pk__in=some).update(target=None)


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
            for each in referrers.registered():
                yield from each.of_runs(runs)
            yield Run.objects.filter(pk__in=runs).delete()[0]
        yield _without_collector(some)


@transaction.atomic
def _without_collector(activations: Collection[UUID]) -> int:
    """Without runs by now. Where one has come since, the database refuses all of it, and the next turn tries
    again."""
    StateChange.objects.filter(activation__in=activations).delete()
    for model in (BreakerTrip, Window):
        model._default_manager.filter(activation__in=activations).update(activation=None)
    rows = Activation.objects.filter(pk__in=activations).order_by()
    return rows._raw_delete(rows.db)


def _keys(rows: QuerySet[Any]) -> Sequence[Any]:
    return list(rows.order_by().values_list("pk", flat=True)[:AT_ONCE])
