"""Describes what becomes of messages that failed: attempts that the broker did not count, and those never
handled well."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from agents.models import Activation, LaunchSetting
from contract.outcomes import Outcome
from failures.hooks import handled_after_return, message_endings
from failures.models import FailureProtocol, RecoveredMessage

MOST = 1000
LOOK_BACK = timedelta(hours=24)
# Of an ordered subscription one message fails at a time.
NEWEST_IN_ORDER = 20


def known_attempts(settings: Collection[LaunchSetting]) -> dict[str, dict[str, int]]:
    """{setting key: {message key: attempts made}} of messages that a KMA died with lately and that did not
    end since.

    Weak keys are left out: equal messages share one, and none may pay for another. The number is the largest
    of all protocols of the message, not only of those: the broker's count stays behind by one for each death
    of a KMA, also in every attempt that follows. Asked with every heartbeat: mostly one look at an index that
    is empty.

    What is not verified counts no attempt and ends none: a server's token can make it up for a run that it
    never had.
    """
    since = timezone.now() - LOOK_BACK
    died = _believed().filter(outcome=Outcome.KMA_DIED.value, occurred_at__gte=since).exclude(message_key="")
    ordered = {setting.key for setting in settings if setting.ordered}
    wanted = {setting.key for setting in settings} - ordered
    struck = wanted.intersection(died.order_by().values_list("setting_key", flat=True).distinct())
    found = {key: _attempts(key, died.filter(setting_key=key), since) for key in struck}
    return found | {key: made for key in ordered if (made := _attempts_in_order(key))}


def _believed() -> QuerySet[FailureProtocol]:
    """Returns protocols of one message each, from runs that this site knows."""
    return FailureProtocol.objects.filter(message_key_weak=False, verified=True)


def _attempts_in_order(setting_key: str) -> dict[str, int]:
    """Returns attempts of the message that blocks an ordered subscription: the broker counts none of them, so
    each protocol does. It may block for long, and what failed before it has ended."""
    failed = _believed().filter(setting_key=setting_key).exclude(message_key="")
    newest = failed.order_by("-occurred_at", "-id").values_list(
        "message_key", "attempt", "occurred_at", "received_at"
    )
    most: dict[str, int] = {}
    latest: dict[str, datetime] = {}
    for key, attempt, occurred_at, received_at in newest[:NEWEST_IN_ORDER]:
        most[key] = max(attempt, most.get(key, 0))
        latest[key] = max(min(occurred_at, received_at), latest.get(key, min(occurred_at, received_at)))
    ended = _ended(setting_key, most)
    return {key: made for key, made in most.items() if key not in ended or ended[key] < latest[key]}


def _attempts(setting_key: str, died: QuerySet[FailureProtocol], since: datetime) -> dict[str, int]:
    keys = set(died.order_by("-occurred_at").values_list("message_key", flat=True)[:MOST])
    ended = _ended(setting_key, keys)
    most: dict[str, int] = {}
    deaths: set[str] = set()
    protocols = FailureProtocol.objects.filter(
        setting_key=setting_key, message_key__in=keys, occurred_at__gte=since, verified=True
    )
    fields = ("message_key", "attempt", "outcome", "occurred_at", "received_at")
    for key, attempt, outcome, occurred_at, received_at in protocols.order_by().values_list(*fields):
        # A KMA's clock that is ahead must not let a death outlive the end that followed it.
        if key in ended and min(occurred_at, received_at) <= ended[key]:
            continue
        most[key] = max(attempt, most.get(key, 0))
        if outcome == Outcome.KMA_DIED.value:
            deaths.add(key)
    return {key: most[key] for key in deaths}


def _ended(setting_key: str, keys: Collection[str]) -> dict[str, datetime]:
    ended: dict[str, datetime] = {}
    of_these = {"setting_key": setting_key, "message_key__in": keys, "verified": True}
    recovered = RecoveredMessage.objects.filter(**of_these)
    exhausted = FailureProtocol.objects.filter(**of_these, last_attempt=True)
    found = [
        dict(recovered.order_by().values_list("message_key").annotate(Max("occurred_at"))),
        dict(exhausted.order_by().values_list("message_key").annotate(Max("occurred_at"))),
        *message_endings(setting_key, keys),
    ]
    for mapping in found:
        for key, at in mapping.items():
            ended[key] = max(at, ended.get(key, at))
    return ended


# -- how many messages failed in an activation and were not handled well later in it -------------------------


# One is enough for an error: past this nobody counts on.
KEYS_AT_ONCE = 500


def unresolved(activation: Activation) -> int:
    """Temporary failures aside. What a standalone agent raised stays: there is no message that could come
    again."""
    failed = FailureProtocol.objects.filter(activation_uuid=activation.pk, temporary=False).order_by()
    return left_of(activation.pk, failed) if failed.exists() else 0


def left_of(activation: UUID, failed: QuerySet[FailureProtocol]) -> int:
    """The same of some of its failures that are not temporary."""
    return failed.filter(message_key="").count() + _strong(activation, failed) + _weak(activation, failed)


def still_failing(failed: Mapping[int, int], recovered: Mapping[int, int]) -> int:
    """Counts, of messages that share a weak key, how many failed last. {attempt: how often}. Each that failed
    in an attempt either fails or is handled well in the next one, or stays failed. Pure."""
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
    for counts in handled_after_return(activation, keys):
        total.update(counts)
    return total
