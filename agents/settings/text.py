"""Says what enabling and disabling do, and stopping on one server."""

from collections.abc import Sequence

from django.utils.translation import gettext

from agents.models import LaunchSetting, Server, Timing


def what_starts(setting: LaunchSetting) -> str:
    facts = {"agent": setting.agent, "pool": setting.pool.name}
    if setting.timing == Timing.DELAYED:
        return (
            gettext(
                "Once the setting is enabled, %(agent)s starts in the pool %(pool)s on schedule or manually."
            )
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
            "The setting stops on every server. The agent receives a stop request and is "
            "terminated after the grace period."
        )
    return gettext(
        "The setting stops on every server. Messages in progress may finish within the grace "
        "period. The rest return to the queue without using up an attempt. New messages wait "
        "in the subscription until the setting is enabled again. Nothing is lost."
    )


def what_stops_there(others: Sequence[Server]) -> list[str]:
    """`others`: servers that may go on with it."""
    names = ", ".join(other.name for other in others)
    goes_on = [gettext("Other servers in the pool: %(servers)s.") % {"servers": names}] if others else []
    return [
        *goes_on,
        gettext(
            "Messages in progress can finish within the grace period. Unfinished messages return "
            "to the queue."
        ),
        gettext(
            "The setting does not start on this server until someone starts it here again. "
            "Disabling and enabling the setting does not change this."
        ),
    ]


def what_starts_there() -> list[str]:
    return [
        gettext("If the setting is enabled, it may start on this server immediately."),
        gettext(
            "An instance that was interrupted on this server stays interrupted until someone resumes it."
        ),
    ]
