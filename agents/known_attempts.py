"""How often messages of a setting were begun, as far as anybody knows. Higher apps register what they know."""

from collections.abc import Callable, Mapping

from agents.models import LaunchSetting

Provider = Callable[[LaunchSetting], Mapping[str, int]]

# The desired state carries them to every server: a bound keeps it small.
MOST = 1000

_providers: list[Provider] = []


def register(provider: Provider) -> None:
    """`provider(setting)` answers {message key: number of attempts known to have been made}."""
    if provider not in _providers:
        _providers.append(provider)


def of(setting: LaunchSetting) -> dict[str, int]:
    """The largest known number per message; the messages with the most attempts when there are too many."""
    known: dict[str, int] = {}
    for provider in _providers:
        for key, attempts in provider(setting).items():
            known[key] = max(attempts, known.get(key, 0))
    if len(known) > MOST:
        known = dict(sorted(known.items(), key=lambda item: (-item[1], item[0]))[:MOST])
    return known
