"""Messages that failed in an activation and were not handled well later in it. Higher apps register how to
count."""

from collections.abc import Callable

from agents.models import Activation

Provider = Callable[[Activation], int]

_providers: list[Provider] = []


def register(provider: Provider) -> None:
    """`provider(activation)` answers a number; 0 means that nothing that failed was left."""
    if provider not in _providers:
        _providers.append(provider)


def of(activation: Activation) -> int:
    return sum(provider(activation) for provider in _providers)
