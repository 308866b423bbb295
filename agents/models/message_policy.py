"""Describes what a setting says of messages that cannot be handled, or that were handled before."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from contract import message_key
from contract.messages import Mode
from contract.outcomes import AfterLast

# Those that settle each message before the next one is needed.
IN_ORDER = (Mode.TRANSACTED.value, Mode.AUTO.value)


class PoisonPolicy(models.TextChoices):
    """Holds what becomes of a message whose last attempt failed, or that is invalid."""

    DLQ = AfterLast.DLQ.value, _("dead-letter queue")
    EXCEPTION = AfterLast.EXCEPTION.value, _("exception destination")
    DISCARD = AfterLast.DISCARD.value, _("discard")
    STAY = AfterLast.STAY.value, _("keep first (ordered subscriptions only)")


def check_duplicate_key(value: str) -> None:
    try:
        message_key.check_key(value)
    except ValueError as error:
        text = _("Enter “key”, “property:NAME” or “pointer:/json/pointer”, or leave it empty.")
        raise ValidationError(text, code="no_key") from error


def check_blocked(value: float) -> None:
    if value < 0 and value != -1:
        raise ValidationError(
            _("Enter a number of seconds, 0 (no delay) or -1 (on request only)."), code="invalid_interval"
        )


def poison_problems(setting: Any) -> dict[str, Any]:
    """Returns what does not fit together in this LaunchSetting, by field."""
    found: dict[str, Any] = {}
    if setting.after_last == PoisonPolicy.EXCEPTION and (problem := _destination_problem(setting)):
        found["exception_destination"] = problem
    if setting.after_last == PoisonPolicy.STAY and not setting.ordered:
        found["after_last"] = _(
            "Available only for an ordered subscription. In any other subscription, later "
            "messages would overtake the failed one."
        )
    if setting.mode == Mode.CLIENT.value:
        for field in ("committed_destination", "rolled_back_destination"):
            if _is_own(setting, getattr(setting, field)):
                found[field] = _(
                    "Every event would return to this setting as a new message. Enter another destination."
                )
    if not setting.ordered:
        return found
    if not setting.takes_messages:
        found["ordered"] = _("A standalone agent does not receive messages.")
    if setting.mode not in IN_ORDER:
        found["mode"] = _(
            "An ordered subscription receives the next message only after the previous one is "
            "acknowledged. Choose transacted or automatic acknowledgement."
        )
    if setting.concurrency != 1:
        found["concurrency"] = _("An ordered subscription processes one message at a time. Enter 1.")
    return found


def _destination_problem(setting: Any) -> Any:
    if not setting.exception_destination:
        return _("Enter a destination, or choose another action.")
    if _is_own(setting, setting.exception_destination):
        return _("The message would loop through its own destination endlessly. Enter another destination.")
    if not _is_as_stored(setting) and (round_trip := _way_back(setting)):
        problem = _("The message would come back here through %(settings)s. Enter another destination.")
        return problem % {"settings": ", ".join(round_trip)}
    return ""


def _is_as_stored(setting: Any) -> bool:
    """A way back that is there already keeps nobody from changing something else: no message goes round, see
    kma."""
    wish = {"after_last": setting.after_last, "exception_destination": setting.exception_destination}
    rows = type(setting)._default_manager.filter(pk=setting.pk, destination=setting.destination_id, **wish)
    return setting.pk is not None and rows.exists()


def _way_back(setting: Any) -> list[str]:
    """The keys of other settings whose exception destinations lead from that of `setting` to its own
    destination, the nearest first; empty: none do."""
    others = type(setting)._default_manager.exclude(pk=setting.pk).filter(after_last=PoisonPolicy.EXCEPTION)
    ways: dict[str, list[str]] = {setting.exception_destination: []}
    edge = set(ways)
    while edge:
        beyond: set[str] = set()
        rows = others.filter(destination__name__in=edge).order_by("key")
        for key, name, to in rows.values_list("key", "destination__name", "exception_destination"):
            if _is_own(setting, to):
                return [*ways[name], key]
            if to and to not in ways:
                ways[to] = [*ways[name], key]
                beyond.add(to)
        edge = beyond
    return []


def _is_own(setting: Any, name: str) -> bool:
    return setting.destination_id is not None and name == setting.subscribed.name
