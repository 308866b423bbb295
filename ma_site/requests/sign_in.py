"""Signing in on pages: slowed down where passwords are guessed, and kept in the audit with address and
client."""

import hashlib
import ipaddress
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db import transaction
from django.db.models import F
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import SignInCounter
from agents.site.components import note_unknown_proxy
from console.audit.log import record
from console.audit.models import AuditResult
from console.client_address import client_address
from console.ui.amounts import duration
from contract.typed import storable
from ma_site.requests.plain import plain_page

# -- who guesses passwords is slowed down, for all processes of the site together ----------------------------
# An attempt counts as failed before the password is looked at, and is taken back when it was right: guesses
# sent at once count one by one. A process that dies between the two leaves a failure too many, which the
# next right password of the pair takes away. What an address did wrong never stops the same account from
# another address: a stranger locks nobody out. An account that is guessed from many addresses gives each
# new one a single free guess.


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


log = structlog.get_logger(__name__)
LONGEST_NAME, LONGEST_CLIENT = 150, 200


def throttled(request: HttpRequest, sign_in: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """`sign_in` answers the form; 429 where it is too early for another attempt, whatever the password is."""
    note_unknown_proxy(request)
    address, account = client_address(request), request.POST.get("username", "")[:LONGEST_NAME]
    try:
        begin_attempt(address, account, timezone.now())
    except TooManyFailures as refused:
        log.warning("sign-in refused", address=address, seconds=round(refused.wait.total_seconds()))
        return _too_early(refused)
    answer = sign_in()
    if answer.status_code == 302:
        end_well(address, account)
    return answer


def _too_early(refused: TooManyFailures) -> HttpResponseBase:
    seconds = math.ceil(refused.wait.total_seconds())
    lines = [
        _("Try again in %(time)s.") % {"time": duration(seconds)},
        _("Attempts are counted per account and per IP address; the lockout is always temporary."),
    ]
    form = (reverse("admin:login"), _("Back to sign-in"))
    answer = plain_page(_("Too many sign-in attempts"), lines, status=429, onwards=form)
    answer.headers["Retry-After"] = str(seconds)
    return answer


@receiver(user_logged_in)
def _keep_sign_in(sender: Any, request: HttpRequest | None, user: User, **_more: Any) -> None:
    _keep("sign_in", request, user, user.get_username())


@receiver(user_logged_out)
def _keep_sign_out(sender: Any, request: HttpRequest | None, user: User | None, **_more: Any) -> None:
    if user is not None:
        _keep("sign_out", request, user, user.get_username())


@receiver(user_login_failed)
def _keep_failure(
    sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **_more: Any
) -> None:
    _keep("sign_in", request, None, str(credentials.get("username", "")), AuditResult.FAILED)


def _keep(
    action: str,
    request: HttpRequest | None,
    user: User | None,
    name: str,
    result: AuditResult = AuditResult.DONE,
) -> None:
    """Nothing for what comes over no network. The name is as typed, cut; never the password."""
    if request is None or not (address := client_address(request)):
        return
    client = storable(request.headers.get("User-Agent", ""))[:LONGEST_CLIENT]
    record(
        action,
        by=user,
        now=timezone.now(),
        target=f"user:{storable(name)[:LONGEST_NAME]}",
        result=result,
        detail={"address": address[:45], "client": client},
    )
