"""Decides what failures have in common: two activations beside each other, one server beside the others,
versions in their order."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import erfc, exp, lgamma, sqrt


class Change(Enum):
    """The kinds of change, in the order in which people want to see them."""

    NEW = "new"
    MORE = "more"
    GONE = "gone"
    FEWER = "fewer"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class Difference:
    """`before`, `after`: failures; `scaled`: what `before` would be with as many attempts as `after` had."""

    fingerprint: str
    before: int
    after: int
    scaled: float
    change: Change


def compare(
    before: Mapping[str, int], after: Mapping[str, int], attempts_before: int, attempts_after: int
) -> list[Difference]:
    """Failures by fingerprint, and how many attempts there were in all (0: not known, then as many).

    More or fewer only where it is hardly chance: two counts of rare events with the same rate differ by no
    more than two standard deviations, sqrt(before * k**2 + after) with k = attempts after / before, 19 times
    out of 20.
    """
    scale = attempts_after / attempts_before if attempts_before > 0 and attempts_after > 0 else 1.0
    found = [_difference(each, before.get(each, 0), after.get(each, 0), scale) for each in {*before, *after}]
    order = list(Change)
    return sorted(
        found, key=lambda one: (order.index(one.change), -max(one.before, one.after), one.fingerprint)
    )


def _difference(fingerprint: str, before: int, after: int, scale: float) -> Difference:
    scaled = before * scale
    if not before:
        change = Change.NEW
    elif not after:
        change = Change.GONE
    elif abs(after - scaled) <= 2 * sqrt(before * scale**2 + after):
        change = Change.SAME
    else:
        change = Change.MORE if after > scaled else Change.FEWER
    return Difference(fingerprint, before, after, scaled, change)


# -- whether the failures of an activation point at a server, or at the message and the agent ----------------


# Attempts that a server must have made, and failures there must be, before anybody may conclude anything.
ENOUGH_ATTEMPTS = 20
ENOUGH_FAILURES = 5
# On every server: the highest rate is at most so many times the lowest.
ALIKE = 3.0


class Where(Enum):
    ONE = "one"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Oddity:
    """`server`: the only one on which it fails; empty where it fails on all of `servers` that made enough
    attempts."""

    where: Where
    server: str
    servers: int


def alone(failed_here: int, failed_elsewhere: int, tried_elsewhere: int) -> bool:
    """Returns whether a kind of failure occurs on one server only, by its failures there and on others and
    the attempts of the others: none of these failed so, though they tried enough to tell."""
    return failed_here >= ENOUGH_FAILURES and not failed_elsewhere and tried_elsewhere >= ENOUGH_ATTEMPTS


def oddity(handled: Mapping[str, int], failed: Mapping[str, int]) -> Oddity | None:
    """Returns by server messages handled well, attempts that failed. None where nothing can be concluded."""
    attempts = {name: handled.get(name, 0) + failed.get(name, 0) for name in {*handled, *failed}}
    tried = {name: made for name, made in attempts.items() if made >= ENOUGH_ATTEMPTS}
    if len(tried) < 2 or sum(failed.values()) < ENOUGH_FAILURES:
        return None
    failing = {name for name, count in failed.items() if count}
    if len(failing) == 1 and failing <= tried.keys():
        return Oddity(Where.ONE, failing.pop(), len(tried))
    rates = [failed.get(name, 0) / made for name, made in tried.items()]
    if 0 < max(rates) <= ALIKE * min(rates):
        return Oddity(Where.ALL, "", len(tried))
    return None


# -- whether a server fails more often than the others of its setting, by counts alone -----------------------

# How often equal servers may be called odd, divided by their number: as many are compared (Bonferroni).
ODD_BY_CHANCE = 0.002
# With enough attempts every difference is significant; only one like this matters, as in
# pipeline.jobs.odd_servers.
TIMES_WORSE = 2.0
# Beyond so many failures in all the normal distribution is exact enough, and quicker.
MOST_EXACT = 1000


@dataclass(frozen=True, slots=True)
class Attempts:
    """`made` of which so many `failed`."""

    made: int
    failed: int

    @property
    def rate(self) -> float:
        return self.failed / self.made if self.made else 0.0


def odd_servers(attempts: Mapping[str, Attempts]) -> dict[str, Attempts]:
    """Returns the servers that fail more often than all others together, each with the attempts of those.

    Fisher's exact test of two proportions, one-sided, of many failures the normal test (NIST/SEMATECH
    e-Handbook of Statistical Methods, 7.3.3, https://www.itl.nist.gov/div898/handbook/prc/section3/prc33.htm):
    how likely is it that, of all failures, so many or more fall on this server by chance. Silent where a side
    made or failed too little to tell.
    """
    made = sum(each.made for each in attempts.values())
    failed = sum(each.failed for each in attempts.values())
    level = ODD_BY_CHANCE / max(2, len(attempts))
    others = {name: Attempts(made - here.made, failed - here.failed) for name, here in attempts.items()}
    return {name: others[name] for name, here in attempts.items() if _is_odd(here, others[name], level)}


def _is_odd(here: Attempts, others: Attempts, level: float) -> bool:
    enough = min(here.made, others.made) >= ENOUGH_ATTEMPTS and here.failed >= ENOUGH_FAILURES
    worse = here.rate >= TIMES_WORSE * others.rate
    return enough and worse and chance_of_failures(here, others) < level


def chance_of_failures(here: Attempts, others: Attempts) -> float:
    """Returns how likely it is that so many of all failures, or more, are of `here` where both fail alike."""
    made, failed = here.made + others.made, here.failed + others.failed
    if failed > MOST_EXACT:
        rate = failed / made
        spread = sqrt(rate * (1 - rate) * (1 / here.made + 1 / others.made))
        return 0.5 * erfc((here.rate - others.rate) / spread / sqrt(2)) if spread else 1.0
    ways = _log_ways(made, failed)
    return sum(
        exp(_log_ways(here.made, number) + _log_ways(others.made, failed - number) - ways)
        for number in range(here.failed, min(failed, here.made) + 1)
    )


def _log_ways(of: int, some: int) -> float:
    return lgamma(of + 1) - lgamma(some + 1) - lgamma(of - some + 1)


# -- which of two versions of an agent is older --------------------------------------------------------------
#
# Python versions are ordered as PEP 440 says
# (https://peps.python.org/pep-0440/#summary-of-permitted-suffixes-and-relative-ordering). All others are read
# as words and numbers: the first numbers are the release, a word of `EARLY` right after them comes before the
# release, everything else after it. Numbers compare by value, words by their letters.


EARLY = frozenset(
    {
        "a",
        "alpha",
        "b",
        "beta",
        "c",
        "rc",
        "cr",
        "pre",
        "preview",
        "dev",
        "m",
        "milestone",
        "nightly",
        "snapshot",
    }
)
_STAGES = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_PEP_440 = re.compile(
    r"v?(?:(?P<epoch>[0-9]+)!)?(?P<release>[0-9]+(?:\.[0-9]+)*)"
    r"(?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_n>[0-9]*))?"
    r"(?P<post>-(?P<post_n1>[0-9]+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_n2>[0-9]*))?"
    r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_n>[0-9]*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
_OTHER = re.compile(r"(?P<before>[^0-9]*)(?P<release>[0-9]+(?:\.[0-9]+)*)?(?P<after>.*)", re.DOTALL)
_COMMIT = re.compile(r"(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}")
_TOKEN = re.compile(r"[0-9]+|[^\W\d_]+")

# A number, or a word: (1, number) or (0, word). A place where nothing stands: below or above all of them.
Token = tuple[int | str, ...]
_BELOW: Token = ()
_ABOVE: Token = (2,)


@dataclass(frozen=True, slots=True, order=True)
class VersionKey:
    """The place of a version in a total order. `stage`: -1 before the release, 0 the release, 1 after it.
    `foreign`: not a Python version; its `rest` is the words and numbers that follow the release."""

    name: tuple[str, ...]
    epoch: int
    release: tuple[int, ...]
    stage: int
    foreign: bool
    rest: tuple[tuple[Token, ...], ...]


def version_key(version: str) -> VersionKey:
    """Versions that mean the same, such as 1.0 and v1.0.0, have the same key."""
    text = version.strip().lower()
    if found := _PEP_440.fullmatch(text):
        return _python_key(found)
    found = _OTHER.fullmatch(text)
    assert found is not None  # it matches everything
    name = tuple(_TOKEN.findall(found["before"]))
    rest = _tokens(found["after"])
    release = _release(found["release"] or "")
    stage = 0 if not rest else -1 if rest[0][1] in EARLY else 1
    return VersionKey(() if name == ("v",) else name, 0, release, stage, True, (rest,))


def is_older(version: str, than: str) -> bool:
    """Returns whether it is certainly older. False where either is not known or the two cannot be compared:
    commits, other names before the numbers, other words after the same release."""
    if not version.strip() or not than.strip() or _is_commit(version) or _is_commit(than):
        return False
    one, other = version_key(version), version_key(than)
    if one.name != other.name or not one < other:
        return False
    same_release = (one.epoch, one.release, one.stage) == (other.epoch, other.release, other.stage)
    return not same_release or _is_decided(one, other)


def _is_decided(one: VersionKey, other: VersionKey) -> bool:
    """Decides for two with one release by the rules of Python, or by a number or the end where they differ
    first."""
    if one.foreign != other.foreign:
        return False
    if not one.foreign:
        return True
    pairs = zip(one.rest[0], other.rest[0], strict=False)
    differing = next((left for left, right in pairs if left != right), None)
    return differing is None or differing[0] == 1  # above a number are only numbers


def _is_commit(version: str) -> bool:
    """The hash of a commit, whole or its head: its digits say nothing of time."""
    return _COMMIT.fullmatch(version.strip().lower()) is not None


def _python_key(found: re.Match[str]) -> VersionKey:
    pre, post, dev, local = found["pre"], found["post"], found["dev"], found["local"]
    of_pre = ((0, _STAGES.get(pre, pre)), _number(found["pre_n"])) if pre else (_BELOW,)
    of_post = _number(found["post_n1"] or found["post_n2"]) if post else _BELOW
    of_dev = _number(found["dev_n"]) if dev else _ABOVE
    stage = -1 if pre else 1 if post else -1 if dev else 1 if local else 0
    rest = (of_pre, (of_post,), (of_dev,), _tokens(local) if local else (_BELOW,))
    return VersionKey((), int(found["epoch"] or 0), _release(found["release"]), stage, False, rest)


def _release(text: str) -> tuple[int, ...]:
    """Zeros at its end say nothing: 1.0 is 1."""
    numbers = [int(part) for part in text.split(".") if part]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _tokens(text: str) -> tuple[Token, ...]:
    words: list[str] = _TOKEN.findall(text)
    return tuple(_number(word) if word.isdecimal() else (0, word) for word in words)


def _number(text: str | None) -> Token:
    return (1, int(text or 0))
