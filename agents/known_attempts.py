"""How often messages of a setting were begun, as far as anybody knows. Higher apps register what they
know."""

from collections.abc import Callable, Collection, Mapping

from agents.models import LaunchSetting

# {setting key: {message key: number of attempts known to have been made}}
Known = Mapping[str, Mapping[str, int]]
Provider = Callable[[Collection[LaunchSetting]], Known]

# The desired state carries them to every server: a bound keeps it small.
MOST = 1000

_providers: list[Provider] = []


def register(provider: Provider) -> None:
    """`provider(settings)` leaves out what it knows nothing of. It is asked with every heartbeat, once for
    all."""
    if provider not in _providers:
        _providers.append(provider)


def of(setting: LaunchSetting) -> dict[str, int]:
    return of_all([setting])[setting.key]


def of_all(settings: Collection[LaunchSetting]) -> dict[str, dict[str, int]]:
    """By setting the largest known number per message; the messages with the most attempts when there are too
    many."""
    answers = [provider(settings) for provider in _providers]
    return {
        setting.key: _bounded([answer[setting.key] for answer in answers if setting.key in answer])
        for setting in settings
    }


def _bounded(found: Collection[Mapping[str, int]]) -> dict[str, int]:
    known: dict[str, int] = {}
    for attempts in found:
        for key, number in attempts.items():
            known[key] = max(number, known.get(key, 0))
    if len(known) > MOST:
        known = dict(sorted(known.items(), key=lambda item: (-item[1], item[0]))[:MOST])
    return known
