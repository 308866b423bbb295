"""Adds entries of the audit: what was done, and what was tried and refused."""

import getpass
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseBase
from django.utils import timezone
from rest_framework.exceptions import APIException

from console.audit.models import AuditEntry, AuditResult
from console.hooks import refusal_kept
from contract.typed import storable

Person = User | AbstractBaseUser | AnonymousUser | None
# Statuses of an answer that say: this person, or this state of things, does not allow it.
REFUSALS = (403, 409)
LONGEST_REASON = 2000


# What the entries that are made meanwhile belong to.
_whole: ContextVar[UUID | None] = ContextVar("whole", default=None)


@contextmanager
def part_of(operation: UUID) -> Iterator[None]:
    """Joins every entry that is made inside and names no operation of its own."""
    before = _whole.set(operation)
    try:
        yield
    finally:
        _whole.reset(before)


# Adds the entry of what is done: called in the transaction of the change, so that both are there or neither.
Record = Callable[[], object]


def no_record() -> None:
    """Records nothing, where no person does it."""


def account() -> str:
    """Returns the account of the system at the command line, where no person is named."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def account_of(by: Person) -> dict[str, str]:
    """Returns the account of an entry: that of the system, where no person is named."""
    return {} if by else {"account": account()}


def record(
    action: str,
    *,
    by: Person,
    now: datetime,
    target: str,
    operation: UUID | None = None,
    setting_key: str = "",
    letter: int | None = None,
    scope: str = "",
    reason: str = "",
    counts: Mapping[str, int] | None = None,
    result: AuditResult = AuditResult.DONE,
    detail: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """One row, in the transaction of what it tells: both are there, or neither. `target` is `kind:id`, such
    as `replay:5b0c…`, `letter:7`, `queue:DLQ.orders`. `detail` is JSON without bodies and masked values."""
    person = by if isinstance(by, User) else None
    return AuditEntry.objects.create(
        by=person,
        by_name=person.get_username()[:150] if person else "",
        action=action[:40],
        target=storable(target)[:300],
        detail=dict(detail or {}),
        operation=operation or _whole.get(),
        setting_key=storable(setting_key)[:61],
        letter=letter,
        scope=scope[:20],
        reason=storable(reason)[:LONGEST_REASON],
        counts=dict(counts or {}),
        result=result,
        at=now,
    )


def record_refused(
    action: str,
    *,
    by: Person,
    target: str,
    operation: UUID | None = None,
    setting_key: str = "",
    letter: int | None = None,
    scope: str = "",
    why: str = "",
    **detail: Any,
) -> AuditEntry:
    """After the transaction of the attempt is over, which left nothing behind. `why` is for people."""
    return record(
        action,
        by=by,
        now=timezone.now(),
        target=target,
        operation=operation,
        setting_key=setting_key,
        letter=letter,
        scope=scope,
        result=AuditResult.REFUSED,
        detail={"why": storable(why)[:LONGEST_REASON], **account_of(by), **detail},
    )


@contextmanager
def attempt(action: str, *, by: Person, target: str, **about: Any) -> Iterator[None]:
    """Outside of every transaction around an action: one that is refused leaves an entry, once, and is
    refused on. `about`: as `record_refused`."""
    try:
        yield
    except Exception as error:
        if refuses(error) and not is_kept(error):
            record_refused(action, by=by, target=target, why=words_of(error), **about)
            mark_kept(error)
            refusal_kept(error, action, by, target)
        raise


def is_kept(refusal: Exception | HttpResponseBase) -> bool:
    """Returns whether an entry tells of it already, or of what it was raised from."""
    told: Any = refusal
    while told is not None:
        if getattr(told, "in_audit", False):
            return True
        told = getattr(told, "__cause__", None)
    return False


def mark_kept(refusal: Exception | HttpResponseBase) -> None:
    refusal.in_audit = True  # type: ignore[union-attr]  # a mark for who audits


def refuses(error: Exception) -> bool:
    """Returns whether it says: not allowed, or not now; the refusals of services say what to do instead. What
    is only wrongly asked is no attempt."""
    if isinstance(error, APIException):
        return error.status_code in REFUSALS
    return isinstance(error, PermissionDenied) or getattr(error, "is_attempt", hasattr(error, "what_to_do"))


def words_of(error: Exception) -> str:
    said = getattr(error, "reason", "") or getattr(error, "detail", "") or error
    return str(said) or "permission denied"
