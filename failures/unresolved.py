"""How many messages failed in an activation and were not handled well later in it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from agents.models import Activation
from failures.models import FailureProtocol, RecoveredMessage

# One is enough for an error: past this nobody counts on.
MOST = 1000
KEYS_AT_ONCE = 500

# {message key: how often a message with it that was given back from a dead-letter queue was handled well}
Returned = Callable[[UUID, Collection[str]], Mapping[str, int]]

_returned: list[Returned] = []


def register_returned(returned: Returned) -> None:
    """`returned(activation, message keys)` says what was given back and handled well in this activation, as
    far as a higher app knows."""
    if returned not in _returned:
        _returned.append(returned)


def unresolved(activation: Activation) -> int:
    """Temporary failures aside. What a standalone agent raised stays: there is no message that could come
    again."""
    failed = FailureProtocol.objects.filter(activation_uuid=activation.pk, temporary=False).order_by()
    return left_of(activation.pk, failed) if failed.exists() else 0


def left_of(activation: UUID, failed: QuerySet[FailureProtocol]) -> int:
    """The same of some of its failures that are not temporary."""
    return failed.filter(message_key="").count() + _strong(activation, failed) + _weak(activation, failed)


def still_failing(failed: Mapping[int, int], recovered: Mapping[int, int]) -> int:
    """Of messages that share a weak key: how many failed last. {attempt: how often}. Each that failed in an
    attempt either fails or is handled well in the next one, or stays failed. Pure."""
    return sum(
        max(0, number - failed.get(attempt + 1, 0) - recovered.get(attempt + 1, 0))
        for attempt, number in failed.items()
    )


def _strong(activation: UUID, failed: QuerySet[FailureProtocol]) -> int:
    """A later attempt is later also where two servers' clocks disagree."""
    later = Q(occurred_at__gte=OuterRef("occurred_at")) | Q(attempt__gt=OuterRef("attempt"))
    recovered = _recovered(activation).filter(later, message_key=OuterRef("message_key"))
    open_still = failed.filter(~Exists(recovered), message_key_weak=False).exclude(message_key="")
    found = 0
    for keys in _key_slices(open_still):
        found += len(set(keys) - _returned_well(activation, keys).keys())
        if found >= MOST:
            break
    return found


def _recovered(activation: UUID) -> QuerySet[RecoveredMessage]:
    """What nobody here can verify turns no error into well."""
    return RecoveredMessage.objects.filter(activation_uuid=activation, verified=True)


def _weak(activation: UUID, failed: QuerySet[FailureProtocol]) -> int:
    found = 0
    for keys in _key_slices(failed.filter(message_key_weak=True).exclude(message_key="")):
        found += _weak_slice(activation, keys)
        if found >= MOST:
            break
    return found


def _weak_slice(activation: UUID, keys: Collection[str]) -> int:
    """A temporary failure ends nothing and resolves nothing: the message is still on its way."""
    protocols = FailureProtocol.objects.filter(activation_uuid=activation, message_key__in=keys)
    recoveries = _recovered(activation).filter(message_key__in=keys)
    failed, recovered = _by_attempt(protocols), _by_attempt(recoveries)
    returned = _returned_well(activation, keys)
    return sum(max(0, still_failing(failed[key], recovered[key]) - returned[key]) for key in keys)


def _by_attempt(rows: QuerySet[FailureProtocol] | QuerySet[RecoveredMessage]) -> dict[str, dict[int, int]]:
    counted: dict[str, dict[int, int]] = defaultdict(dict)
    numbers = rows.order_by().values_list("message_key", "attempt").annotate(number=Count("pk"))
    for key, attempt, number in numbers:
        counted[key][attempt] = number
    return counted


def _key_slices(rows: QuerySet[FailureProtocol]) -> Iterator[list[str]]:
    """Their message keys, each once, some at a time."""
    after = ""
    while True:
        following = rows.filter(message_key__gt=after).order_by("message_key")
        keys = list(following.values_list("message_key", flat=True).distinct()[:KEYS_AT_ONCE])
        if keys:
            yield keys
        if len(keys) < KEYS_AT_ONCE:
            return
        after = keys[-1]


def _returned_well(activation: UUID, keys: Collection[str]) -> Counter[str]:
    total: Counter[str] = Counter()
    for returned in _returned:
        total.update(returned(activation, keys))
    return total
