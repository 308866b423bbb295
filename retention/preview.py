"""Describes what retention would delete now, counted up to a bound, with nothing deleted."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from agents.models import Activation, LaunchSetting
from failures.models import FailureProtocol
from retention.ages import dead_letters
from retention.ages.limits import AGE_LIMITS, COUNTED, AgePreview
from retention.protocols import setting_rule
from retention.protocols.holds import Candidate, held_back
from retention.protocols.queries import past, ranges_of, ranges_of_nobody, up_to
from retention.rules import Range, Rule

# Parts of AT_ONCE protocols, and activations, that are looked at per range.
MOST_PARTS = 10
MOST_ACTIVATIONS = 5000


@dataclass(frozen=True, slots=True)
class Preview:
    """`cut`: there are more; the counts are then at least so many. `kept`: {reason: how many}."""

    setting_key: str
    of: Range
    going: int
    kept: dict[str, int] = field(default_factory=dict)
    cut: bool = False

    @property
    def holds(self) -> bool:
        """Says so too where what was read stays for its other clock, and there is more."""
        return bool(self.going or self.kept or self.cut)


def preview(now: datetime) -> Iterator[tuple[str, list[Preview]]]:
    """(key of a setting, its ranges, of those that hold nothing too), setting by setting; the last one,
    without a key, is what is of none."""
    after = 0
    while setting := LaunchSetting.objects.filter(pk__gt=after).order_by("pk").first():
        yield setting.key, preview_of(setting, now)
        after = setting.pk
    rows = FailureProtocol.objects.filter(activation=None)
    yield "", [_counted("", each, setting_rule.by_time(rows, each), now) for each in ranges_of_nobody(now)]


def preview_of(setting: LaunchSetting, now: datetime) -> list[Preview]:
    """What two ranges cover is counted in the first of them: when the second is applied, it is gone."""
    ranges = ranges_of(setting, now)
    return [
        _counted(
            setting.key,
            each,
            (setting_rule.without(ranges[:place], some) for some in _parts(setting, each)),
            now,
        )
        for place, each in enumerate(ranges)
    ]


def _parts(setting: LaunchSetting, of: Range) -> Iterable[list[Candidate]]:
    if of.rule is not Rule.WELL:
        return setting_rule.by_time(FailureProtocol.objects.filter(setting=setting), of)
    return _of_activations(setting, of)


def _of_activations(setting: LaunchSetting, of: Range) -> Iterator[list[Candidate]]:
    uncleared = up_to(Activation.objects.filter(setting=setting, cleared=False, ended_at__isnull=False), of)
    looked, after = 0, None
    while looked < MOST_ACTIVATIONS:
        following = uncleared.filter(past(after)) if after else uncleared
        some = list(
            following.order_by("number", "started_at").values_list("pk", "number", "started_at")[:200]
        )
        if not some:
            return
        for pk, _number, _started_at in some:
            yield from setting_rule.of_activation(pk)
        looked, after = looked + len(some), (some[-1][1], some[-1][2])
    raise _Cut


class _Cut(Exception):
    pass


def _counted(key: str, of: Range, parts: Iterable[list[Candidate]], now: datetime) -> Preview:
    going, kept, cut = 0, Counter[str](), False
    walk = iter(parts)
    try:
        for picked in islice(walk, MOST_PARTS):
            stays = held_back(picked, now)
            kept.update(stays.values())
            going += len(picked) - len(stays)
        cut = next(walk, None) is not None
    except _Cut:
        cut = True
    return Preview(key, of, going, dict(kept), cut)


def preview_ages(now: datetime) -> Iterator[AgePreview]:
    """Yields what would go of what has a time of its own."""
    yield from dead_letters.foresee(now, COUNTED)
    for each in AGE_LIMITS:
        if (going := each.foresee(now)) is not None:
            yield going
