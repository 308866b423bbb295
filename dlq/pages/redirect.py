"""Where dead letters may be redirected to, as a field of a form: settings of the same destination first, then
those of others; and what a person has acknowledged of the one that was compared."""

from itertools import groupby
from typing import Any

from django import forms
from django.db.models import Case, Q, QuerySet, When
from django.http import HttpRequest
from django.utils.translation import gettext

from agents.models import Destination, LaunchSetting
from agents.pools.rights import may, settings_for
from dlq import rights
from dlq.replay import requests
from dlq.replay.preflight.rules import OTHER_DESTINATION


def targets_of(setting: LaunchSetting, user: Any) -> QuerySet[LaunchSetting]:
    """Other settings to which this person may redirect, those of the same destination first."""
    same = Q(destination=setting.destination_id)
    others = LaunchSetting.objects.none()
    if may(user, rights.REDIRECT, setting):
        others |= settings_for(user, rights.REDIRECT).filter(same)
    if may(user, rights.REDIRECT_ELSEWHERE, setting):
        others |= settings_for(user, rights.REDIRECT_ELSEWHERE).exclude(same)
    found = others.exclude(destination=None).exclude(pk=setting.pk).select_related("destination", "pool")
    return found.order_by(Case(When(same, then=0), default=1), "destination__name", "key")


class TargetField(forms.ModelChoiceField):  # type: ignore[type-arg]  # no subscript without stubs
    """One of `targets_of`, grouped by destination."""

    def __init__(self, setting: LaunchSetting, targets: QuerySet[LaunchSetting]) -> None:
        super().__init__(targets, to_field_name="key", label=gettext("Target setting"), empty_label=None)
        self.choices = [
            (self._title(setting, destination), [(target.key, target.key) for target in some])
            for destination, some in groupby(targets, key=lambda target: target.subscribed)
        ]

    @staticmethod
    def _title(setting: LaunchSetting, destination: Destination) -> str:
        if destination.pk == setting.destination_id:
            return gettext("Same destination")
        return gettext("Other destination: %(name)s") % {"name": destination.name}


def first_target(setting: LaunchSetting, user: Any) -> LaunchSetting | None:
    """The first one that could get something now; where none could, the one whose refusal says why."""
    targets = list(targets_of(setting, user))
    for target in targets:
        if not requests.target_refusal(target, elsewhere=target.destination_id != setting.destination_id):
            return target
    return targets[0] if targets else None


def ticked(request: HttpRequest, target: LaunchSetting | None) -> tuple[str, ...]:
    """The boxes that were ticked. How handling differs was said of one setting: chosen another one, nobody
    has seen it."""
    codes = request.POST.getlist("acknowledge")
    if target is not None and request.POST.get("compared") != target.key:
        codes = [code for code in codes if code != OTHER_DESTINATION]
    return tuple(codes)
