"""Slows down who guesses passwords, for all processes of the site together.

An attempt counts as failed before the password is looked at, and is taken back when it was right: guesses
sent at once count one by one. A process that dies between the two leaves a failure too many, which the next
right password of the pair takes away. What an address did wrong never stops the same account from another
address: a stranger locks nobody out. An account that is guessed from many addresses gives each new one a
single free guess."""

import hashlib
import ipaddress
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from agents.models import SignInCounter

FREE_OF_PAIR, FREE_OF_ADDRESS, GUESSED = 4, 20, 20
LONGEST = timedelta(minutes=15)
# After so long without a failure everything is as new.
FORGOTTEN_AFTER = timedelta(hours=1)
MOST_DELETED = 1000


class TooManyFailures(Exception):
    def __init__(self, wait: timedelta) -> None:
        super().__init__("too many failures")
        self.wait = wait


def delay(failures: int, free: int) -> timedelta:
    """Before the next attempt: nothing for the free ones, then 2 s, doubled with each."""
    if failures <= free:
        return timedelta(0)
    return min(LONGEST, timedelta(seconds=2 ** min(failures - free, 20)))


def place_of(address: str) -> str:
    """A network of IPv6 belongs to one person, who has as many addresses as they like."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address[:45]
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped:
            return str(known.ipv4_mapped)
        return str(ipaddress.ip_network((known, 64), strict=False))
    return str(known)


def begin_attempt(address: str, account: str, now: datetime) -> None:
    """Counts a failure ahead. Raises TooManyFailures, and then counts nothing."""
    place, hashed = place_of(address), _hash(account)
    # The locks of two attempts come in one order: account, address, pair.
    with transaction.atomic():
        guessed = _add(f"account:{hashed}", now, None) > GUESSED
        _add(f"address:{place}", now, FREE_OF_ADDRESS)
        _add(f"pair:{place}:{hashed}", now, 1 if guessed else FREE_OF_PAIR)


def end_well(address: str, account: str) -> None:
    """The password was right: this attempt was no failure. One row after the other, in the order of
    `begin_attempt`: nobody has one of them and waits for another. A kill in between leaves a failure too
    many, as one before it."""
    place, hashed = place_of(address), _hash(account)
    for key in (f"account:{hashed}", f"address:{place}"):
        row = SignInCounter.objects.filter(key=key, failures__gt=0)
        row.update(failures=F("failures") - 1, blocked_until=None)
    SignInCounter.objects.filter(key=f"pair:{place}:{hashed}").delete()


@transaction.atomic
def forget_old_counters(now: datetime) -> None:
    """Those that somebody has at this moment stay: they are not old any more."""
    old = SignInCounter.objects.filter(last_at__lt=now - FORGOTTEN_AFTER).select_for_update(skip_locked=True)
    SignInCounter.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:MOST_DELETED])).delete()


def _add(key: str, now: datetime, free: int | None) -> int:
    """Failures with this one. The row is locked until the attempt is counted; `free` None blocks nobody."""
    SignInCounter.objects.get_or_create(key=key, defaults={"last_at": now})
    row = SignInCounter.objects.select_for_update().get(key=key)
    if free is not None and row.blocked_until is not None and row.blocked_until > now:
        raise TooManyFailures(row.blocked_until - now)
    row.failures = 1 if now - row.last_at > FORGOTTEN_AFTER else row.failures + 1
    row.last_at = now
    wait = delay(row.failures, free) if free is not None else None
    row.blocked_until = now + wait if wait else None
    row.save(update_fields=["failures", "last_at", "blocked_until"])
    return row.failures


def _hash(account: str) -> str:
    return hashlib.sha256(account.strip().lower().encode("utf-8", "surrogatepass")).hexdigest()[:32]
