"""Describes what a person says before dead letters move: why, how fast, when, step by step, where to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.models import LaunchSetting
from agents.pools.rights import settings_for
from console.operations.inputs import StorableField
from console.ui.amounts import number
from dlq import rights
from dlq.models import Action, Scope
from dlq.models.replay import DELIVERING
from dlq.replay.preflight import text
from dlq.replay.preflight.rules import PreflightResult
from dlq.replay.requests import LARGEST_SELECTION, MOST_PER_SECOND, Options, listed_scope
from dlq.search.filter import LetterFilter

LONGEST_REASON = 2000


class PreflightForm(forms.Form):
    """`options` after it is valid. Of `shown` (what has to be typed) the page knows the number."""

    reason = StorableField(
        label=_("Why? (kept with the replay)"),
        required=False,
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"class": "reason", "rows": 3}),
    )
    per_second = forms.FloatField(
        label=_("Letters a second (0 = as fast as the broker)"),
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
    ladder = forms.BooleanField(
        label=_("Ladder: 1, 5, 25, 125, … letters"),
        required=False,
        help_text=_(
            "After each step it waits for what becomes of them, and stops by itself when too many fail again."
        ),
    )
    ladder_percent = forms.IntegerField(
        label=_("The ladder stops above, % that fail again"), required=False, min_value=0, max_value=100
    )
    confirm = forms.CharField(label="", required=False, max_length=20)

    def __init__(self, data: Any, *, action: str, setting: LaunchSetting, user: Any) -> None:
        super().__init__(data)
        self.action = action
        self.fields["ladder_percent"].initial = Options().ladder_percent
        self.fields["per_second"].initial = 0
        if action == Action.DISCARD:
            self.fields["reason"].required = True
            self.fields["reason"].label = gettext("Why? (kept with the letters in the bin)")
        if action not in DELIVERING:  # into the bin they go at once: no agent needs care
            for name in ("per_second", "window_from", "window_until", "ladder", "ladder_percent"):
                del self.fields[name]
        if action == Action.REDIRECT:
            self.fields["target"] = forms.ModelChoiceField(
                targets_of(setting, user),
                to_field_name="key",
                label=gettext("To the setting"),
                empty_label=None,
            )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors and (problem := self.options.problem()):
            self.add_error(None, problem)
        return cleaned

    def check_typed(self, going: int) -> None:
        """Adds an error where the number was not typed as it is shown."""
        digits = "".join(letter for letter in self.cleaned_data.get("confirm", "") if letter.isdecimal())
        if digits != str(going):
            self.add_error("confirm", gettext("Type the number %(n)s.") % {"n": number(going)})

    @property
    def options(self) -> Options:
        said = self.cleaned_data
        if "ladder" not in self.fields:
            return Options()
        percent = said.get("ladder_percent")
        return Options(
            per_second=said.get("per_second") or 0.0,
            window_from=said.get("window_from"),
            window_until=said.get("window_until"),
            ladder=bool(said.get("ladder")),
            ladder_percent=Options().ladder_percent if percent is None else percent,
        )


def targets_of(setting: LaunchSetting, user: Any) -> Any:
    """Other settings of the same destination to which this person may redirect."""
    others = (
        settings_for(user, rights.REDIRECT).filter(destination=setting.destination).exclude(pk=setting.pk)
    )
    return others.exclude(destination=None).order_by("key")


# -- what has to be acknowledged before dead letters move, as boxes of a form --------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    code: str
    sentence: str
    words: str
    ticked: bool


def ticks_of(flight: PreflightResult, acknowledged: Iterable[str]) -> list[Tick]:
    known = frozenset(acknowledged)
    return [
        Tick(each.code, text.sentence(each), text.tick(each), each.code in known) for each in flight.warnings
    ]


# -- scope of an address or a form: chosen ones, what a filter finds, a group, all of a setting --------------


@dataclass(frozen=True, slots=True)
class ChosenScope:
    """`letters` for the scopes one and selection, `query` for group and matching."""

    scope: Scope
    letters: tuple[int, ...] = ()
    query: str = ""

    @property
    def listed(self) -> str:
        return ",".join(map(str, self.letters))


def chosen_scope(request: HttpRequest) -> ChosenScope | None:
    """`all=1`; `match=1` with a filter, and `group=1` where that filter is a group; else `letter=7&letter=8`
    or `letters=7,8`. A POST carries the filter as one field `query`. None: nothing is named."""
    data = request.POST if request.method == "POST" else request.GET
    if data.get("all") == "1":
        return ChosenScope(Scope.ALL)
    if data.get("match") == "1" or data.get("group") == "1":
        query = data.get("query", "") if request.method == "POST" else filter_of(data)
        return ChosenScope(Scope.GROUP if data.get("group") == "1" else Scope.MATCHING, query=query)
    ids = parse_numbers([*data.getlist("letter"), *data.get("letters", "").split(",")])
    return ChosenScope(listed_scope(ids), tuple(ids)) if ids else None


def parse_numbers(texts: list[str]) -> list[int]:
    """One more than are taken at most: then there are too many."""
    found = {int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) < 19}
    return sorted(found)[: LARGEST_SELECTION + 1]


def filter_of(query: QueryDict) -> str:
    return LetterFilter.part_of(query).urlencode()
