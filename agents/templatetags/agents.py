"""Describes what the templates say of runs, activations and the history."""

from typing import Any

from django import template
from django.utils import timezone

from agents.models import Activation, BreakerTrip, StateChange
from agents.pages import history, trips
from agents.reasons import problems_of
from console.ui import amounts

register = template.Library()


@register.filter
def run_problem(run: Any) -> str:
    """Returns what keeps it from its work, in the reader's language."""
    return "; ".join(map(str, problems_of(run)))


@register.filter
def lasted(activation: Activation) -> str:
    return amounts.duration((activation.ended_at or timezone.now()) - activation.started_at)


@register.filter
def change_text(change: StateChange) -> str:
    return history.sentence(change)


@register.filter
def change_tone(change: StateChange) -> str:
    return history.tone(change)


@register.filter
def trip_cause(trip: BreakerTrip) -> str:
    return trips.cause_of_trip(trip, list(trip.interruptions.all()))
