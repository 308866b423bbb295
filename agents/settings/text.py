"""Says what enabling and disabling do, and stopping on one server."""

from collections.abc import Sequence

from django.utils.translation import gettext

from agents.models import LaunchSetting, Server, Timing


def what_starts(setting: LaunchSetting) -> str:
    facts = {"agent": setting.agent, "pool": setting.pool.name}
    if setting.timing == Timing.DELAYED:
        return (
            gettext("From then on, its schedule or an operator starts %(agent)s in the pool %(pool)s.")
            % facts
        )
    if not setting.takes_messages:
        return gettext("A new activation starts %(agent)s in the pool %(pool)s.") % facts
    text = gettext(
        "A new activation starts %(agent)s in the pool %(pool)s and processes the waiting messages."
    )
    return text % facts


def what_stops(setting: LaunchSetting) -> str:
    if not setting.takes_messages:
        return gettext(
            "It stops on every server. The agent receives a stop request and is terminated after "
            "the grace period."
        )
    return gettext(
        "It stops on every server. Messages in progress may finish within the grace period; "
        "the rest return to the queue without using up an attempt. New messages wait in the "
        "subscription until the setting is enabled again. Nothing is lost."
    )


def what_stops_there(others: Sequence[Server]) -> list[str]:
    """`others`: servers that may go on with it."""
    names = ", ".join(other.name for other in others)
    goes_on = [gettext("Other servers of its pool: %(servers)s.") % {"servers": names}] if others else []
    return [
        *goes_on,
        gettext("Messages in progress finish within the grace period; the rest return to the queue."),
        gettext(
            "The setting does not start there, even after it is disabled and enabled, until "
            "someone starts it on this server again."
        ),
    ]


def what_starts_there() -> list[str]:
    return [
        gettext("While the setting is enabled, it may start there at once."),
        gettext("An instance that was interrupted there stays interrupted until it is resumed."),
    ]
