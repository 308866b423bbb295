"""Describes what becomes of messages that failed: attempts that the broker did not count, those never
handled well, and where each is now."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, TextChoices
from django.utils import timezone
from django.utils.translation import pgettext_lazy

from agents.models import Activation, LaunchSetting
from contract.outcomes import Outcome
from failures.hooks import handled_after_return, message_endings, message_places
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


# -- where the message of a failure is now -------------------------------------------------------------------
# Still retried, dead-lettered, replayed or recovered.


# (setting key, message key)
Case = tuple[str, str]
# What a higher app knows of it: a word of `MessageState`, and since when.
Place = tuple[str, datetime]


class MessageState(TextChoices):
    RETRIED = "retried", pgettext_lazy("message", "being retried")
    DEAD = "dead", pgettext_lazy("message", "dead-lettered")
    REPLAYED = "replayed", pgettext_lazy("message", "replayed")
    RECOVERED = "recovered", pgettext_lazy("message", "processed later")
    ELSEWHERE = "exception", pgettext_lazy("message", "sent to the exception destination")
    DISCARDED = "discarded", pgettext_lazy("message", "discarded")
    IN_TRASH = "in_trash", pgettext_lazy("message", "in trash")
    GONE = "gone", pgettext_lazy("message", "no longer on the broker")


@dataclass(frozen=True, slots=True)
class LastFailure:
    """Of a message. `attempt` and `at` are the greatest of all. `exhausted`: there is no attempt left;
    `disposition` says what became of it then."""

    at: datetime
    attempt: int
    exhausted: bool = False
    disposition: str = ""


def state_of(
    failed: LastFailure, recovered: tuple[int, datetime] | None, place: Place | None
) -> MessageState:
    """Pure. `recovered`: the greatest attempt and instant at which it was processed. A later attempt is later
    also where the clocks of two servers disagree."""
    processed = recovered is not None and (recovered[0] > failed.attempt or recovered[1] >= failed.at)
    if place is not None and not (processed and recovered is not None and recovered[1] >= place[1]):
        return MessageState(place[0])
    if processed:
        return MessageState.RECOVERED
    if not failed.exhausted:
        return MessageState.RETRIED
    return {"exception": MessageState.ELSEWHERE, "discarded": MessageState.DISCARDED}.get(
        failed.disposition, MessageState.DEAD
    )


def message_states(rows: Iterable[FailureProtocol]) -> dict[Case, MessageState]:
    """Of a page of protocols, in a few questions by indexes. Messages that share a weak key have none: nobody
    can tell which is which."""
    cases = {
        (row.setting_key, row.message_key) for row in rows if row.message_key and not row.message_key_weak
    }
    if not cases:
        return {}
    failed, recovered = _failed(cases), _processed(cases)
    places: dict[Case, Place] = {}
    for known in message_places(cases):
        places |= known
    return {
        case: state_of(failed[case], recovered.get(case), places.get(case)) for case in cases & failed.keys()
    }


def _failed(cases: Collection[Case]) -> Mapping[Case, LastFailure]:
    keys = {key for _setting, key in cases}
    rows = FailureProtocol.objects.filter(message_key__in=keys).order_by()
    exhausted = rows.filter(Q(last_attempt=True) | ~Q(disposition=""))
    last = exhausted.values_list("setting_key", "message_key").annotate(Max("disposition"))
    ended = {(setting, key): disposition for setting, key, disposition in last}
    found = rows.values_list("setting_key", "message_key").annotate(Max("occurred_at"), Max("attempt"))
    return {
        (setting, key): LastFailure(at, attempt, (setting, key) in ended, ended.get((setting, key), ""))
        for setting, key, at, attempt in found
    }


def _processed(cases: Collection[Case]) -> Mapping[Case, tuple[int, datetime]]:
    keys = {key for _setting, key in cases}
    rows = RecoveredMessage.objects.filter(message_key__in=keys, verified=True).order_by()
    found = rows.values_list("setting_key", "message_key").annotate(Max("attempt"), Max("occurred_at"))
    return {(setting, key): (attempt, at) for setting, key, attempt, at in found}
