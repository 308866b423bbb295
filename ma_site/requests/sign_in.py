"""Signing in on pages: slowed down where passwords are guessed, and kept in the audit with address and
client."""

import math
from collections.abc import Callable
from typing import Any

import structlog
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.site.components import note_unknown_proxy
from agents.site.sign_ins import TooManyFailures, begin_attempt, end_well
from console.audit.log import record
from console.audit.models import AuditResult
from console.client_address import client_address
from console.ui.amounts import duration
from contract.text import storable
from ma_site.requests.plain import plain_page

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
        _("Attempts are counted per account and per address; nothing is locked permanently."),
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
