"""What agents must know of messages whose KMA died with them: the broker did not count those attempts."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta

from django.db.models import Max, QuerySet
from django.utils import timezone

from agents.models import LaunchSetting
from contract.outcomes import Outcome
from failures.models import FailureProtocol, RecoveredMessage

MOST = 1000
LOOK_BACK = timedelta(hours=24)
# Of an ordered subscription one message fails at a time.
NEWEST_IN_ORDER = 20

# {message key: when it was last known to have ended, as handled or dead}
Endings = Callable[[str, Collection[str]], Mapping[str, datetime]]

_endings: list[Endings] = []


def register_endings(endings: Endings) -> None:
    """`endings(setting key, message keys)` says when messages last ended, as far as a higher app knows."""
    if endings not in _endings:
        _endings.append(endings)


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
    """Of one message each, from runs that this site knows."""
    return FailureProtocol.objects.filter(message_key_weak=False, verified=True)


def _attempts_in_order(setting_key: str) -> dict[str, int]:
    """Of the message that blocks an ordered subscription: the broker counts none of its attempts, so each
    protocol tells. It may block for long, and what failed before it has ended."""
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
        *(endings(setting_key, keys) for endings in _endings),
    ]
    for mapping in found:
        for key, at in mapping.items():
            ended[key] = max(at, ended.get(key, at))
    return ended
