"""The form in which a person says why dead letters move, how fast, when, in which order and where to; and
what they have acknowledged of the setting that was compared."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from django import forms
from django.db.models import Case, Q, QuerySet, When
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.models import Destination, LaunchSetting
from agents.pools.rights import may, settings_for
from console.audit.log import LONGEST_REASON
from console.operations.inputs import StorableField
from console.ui.amounts import is_typed, number
from dlq import rights
from dlq.models import Action, InOrder
from dlq.models.replay import DELIVERING, TO_A_SUBSCRIPTION
from dlq.replay import requests
from dlq.replay.preflight.rules import LADDER, OTHER_DESTINATION, PreflightResult
from dlq.replay.requests import HOLD_MINUTES, MOST_HOLD_MINUTES, MOST_PER_SECOND, Options


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


class PreflightForm(forms.Form):
    """`options` after it is valid. Of `shown` (what has to be typed) the page knows the number."""

    reason = StorableField(
        label=_("Reason (saved with the replay)"),
        required=False,
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"class": "reason", "rows": 3}),
    )
    in_order = forms.ChoiceField(label=_("Order"), required=False)
    hold_minutes = forms.IntegerField(
        label=_("Maximum hold time of the subscription, minutes (only for “before the waiting messages”)"),
        required=False,
        min_value=1,
        max_value=MOST_HOLD_MINUTES,
        help_text=_(
            "Until these messages are processed, all other messages of the subscription wait, "
            "including new ones. When the time set here is up, unprocessed messages are placed "
            "after the waiting ones."
        ),
    )
    ladder = forms.BooleanField(
        label=_("Ladder: 1, 5, 25, 125, … messages"),
        required=False,
        help_text=_(
            "After each step the replay waits for the outcomes. It stops automatically when too "
            "many messages fail again."
        ),
    )
    ladder_percent = forms.IntegerField(
        label=_("Stop the ladder above this share of repeat failures, %"),
        required=False,
        min_value=0,
        max_value=100,
    )
    per_second = forms.FloatField(
        label=_("Messages per second (0 = unlimited)"),
        required=False,
        min_value=0,
        max_value=MOST_PER_SECOND,
        widget=forms.NumberInput(attrs={"step": "any", "min": "0"}),
    )
    window_from = forms.TimeField(
        label=_("Not before (time of day)"), required=False, widget=forms.TimeInput(attrs={"type": "time"})
    )
    window_until = forms.TimeField(
        label=_("Not after (time of day)"), required=False, widget=forms.TimeInput(attrs={"type": "time"})
    )
    confirm = forms.CharField(label="", required=False, max_length=20)

    def __init__(self, data: Any, *, action: str, setting: LaunchSetting, user: Any) -> None:
        super().__init__(data)
        self.action = action
        self.fields["ladder_percent"].initial = Options().ladder_percent
        self.fields["per_second"].initial = 0
        if action == Action.DISCARD:
            self.fields["reason"].required = True
            self.fields["reason"].label = gettext("Reason (saved with the messages in the trash)")
        if action not in DELIVERING:  # into the bin they go at once: no agent needs care
            for name in ("per_second", "window_from", "window_until", "ladder", "ladder_percent"):
                del self.fields[name]
        if action in TO_A_SUBSCRIPTION:
            self._offer_orders(setting)
        else:
            del self.fields["in_order"], self.fields["hold_minutes"]
        if action == Action.REDIRECT:
            self.fields["target"] = TargetField(setting, targets_of(setting, user))
            self.order_fields(["target"])

    def _offer_orders(self, setting: LaunchSetting) -> None:
        """Of a setting that keeps an order it is recommended."""
        recommended = self.action == Action.GIVE_BACK and setting.ordered
        label = gettext("in publishing order, %(place)s")
        if recommended:
            label = gettext("in publishing order, %(place)s (recommended)")
        field = self.fields["in_order"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [
            ("", gettext("in broker queue order")),
            *((value, label % {"place": place}) for value, place in InOrder.choices),
        ]
        field.help_text = gettext(
            "Sorted by the broker's message ids; each message is moved separately. After a "
            "failover to a broker with another node id, messages from the old node are skipped."
        )
        self.fields["hold_minutes"].initial = HOLD_MINUTES

    def recommend_ladder(self, *, ticked: bool) -> None:
        """Says so where the pre-flight advises one; `ticked` at the first look. Whoever knows better leaves
        it."""
        self.fields["ladder"].label = gettext("Ladder: 1, 5, 25, 125, … messages (recommended)")
        self.fields["ladder"].initial = ticked

    @property
    def with_ladder(self) -> bool:
        """Returns whether the box is ticked as the form stands, valid or not."""
        if (field := self.fields.get("ladder")) is None:
            return False
        # Not of the bound field, which keeps the label that it finds at first.
        if self.is_bound:
            return bool(field.widget.value_from_datadict(self.data, {}, "ladder"))
        return bool(field.initial)

    def lacks(self, verdict: PreflightResult, acknowledged: Iterable[str]) -> bool:
        """Returns whether a warning is not acknowledged that this form, valid or not, calls for."""
        missing = {warning.code for warning in verdict.missing(acknowledged)}
        return bool(missing - {LADDER} if self.with_ladder else missing)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors and (problem := self.options.problem()):
            self.add_error(None, problem)
        return cleaned

    def check_typed(self, going: int) -> None:
        """Adds an error where the number was not typed as it is shown."""
        if not is_typed(self.cleaned_data.get("confirm", ""), going):
            self.add_error("confirm", gettext("Type the number %(n)s.") % {"n": number(going)})

    @property
    def options(self) -> Options:
        said = self.cleaned_data
        if "ladder" not in self.fields:
            return Options()
        in_order = said.get("in_order") or ""
        ahead = in_order == InOrder.AHEAD
        percent = said.get("ladder_percent")
        return Options(
            per_second=said.get("per_second") or 0.0,
            window_from=said.get("window_from"),
            window_until=said.get("window_until"),
            ladder=bool(said.get("ladder")),
            ladder_percent=Options().ladder_percent if percent is None else percent,
            in_order=in_order,
            hold_minutes=(said.get("hold_minutes") or HOLD_MINUTES) if ahead else 0,
        )
