"""Keys that no new setting can have, because the queue of that name is somebody else's. Higher apps register
what they know of such queues."""

from collections.abc import Callable

from django.utils.functional import Promise

# Why the key is taken, or None. Asked for each new setting: rows only, never the broker.
Provider = Callable[[str], "str | Promise | None"]

_providers: list[Provider] = []


def register(provider: Provider) -> None:
    if provider not in _providers:
        _providers.append(provider)


def problem_of(key: str) -> "str | Promise | None":
    return next((problem for provider in _providers if (problem := provider(key))), None)
