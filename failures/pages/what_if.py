"""What-if: how often another limit would have switched a setting off in the last days. A GET form, so also a
link."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django import forms
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_safe

from agents.breaker.rules import NEEDED_OF_MANY
from agents.models import Activation, LaunchSetting, Spread
from console.ui.amounts import number
from console.ui.page import Panel, link, needs, page
from contract.breaker import same_limit
from failures.models import FailureProtocol
from failures.pages.breaker import READ
from failures.pages.protocols import VIEW
from failures.what_if import Answer, BackTest, Failure, Stored

SEE_SETTING = "agents.view_launchsetting"
SPAN = timedelta(days=30)
MOST = 50_000
CHUNK = 2_000
SHOWN = 20


class WhatIfForm(forms.Form):
    m = forms.IntegerField(min_value=1, max_value=10_000, label=gettext_lazy("Threshold (M)"))


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """`cut`: there were more failures than are looked at; then only those after `since` were."""

    m: int
    n: int
    answer: Answer
    since: datetime
    cut: bool
    sentence: str


@require_safe
@needs(SEE_SETTING, VIEW)
def what_if_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = get_object_or_404(LaunchSetting, key=key)
    now = timezone.now()
    asked = "m" in request.GET
    form = WhatIfForm(request.GET if asked else None, initial={"m": setting.breaker_m})
    m = form.cleaned_data["m"] if asked and form.is_valid() else setting.breaker_m
    # As it is set, too: in the same reading of the rows.
    limits = list(dict.fromkeys([m, setting.breaker_m])) if not asked or form.is_valid() else []
    return page(
        request,
        "failures/what_if.html",
        title=_("What-if check"),
        section="settings",
        crumbs=[(_("Settings"), link("settings")), (setting.key, link("setting", setting.key))],
        setting=setting,
        form=form,
        m=m,
        answers=what_if_rows(setting, limits, now),
        shown=SHOWN,
    )


def what_if_panel(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    """The form alone: replaying is asked for, not done with every look at the setting."""
    if not request.user.has_perm(VIEW):
        return None
    context = {
        "setting": setting,
        "m": setting.breaker_m,
        "form": WhatIfForm(initial={"m": setting.breaker_m}),
    }
    return {
        "title": _("What-if: another threshold"),
        "template": "failures/what_if_form.html",
        "context": context,
    }


def what_if_rows(setting: LaunchSetting, limits: Sequence[int], now: datetime) -> list[WhatIfRow]:
    """Returns a row for each limit, from the latest MOST failures at most, read once and streamed."""
    if not limits:
        return []
    rows = FailureProtocol.objects.filter(setting=setting, occurred_at__gte=now - SPAN)
    older = rows.order_by("-occurred_at").values_list("occurred_at", flat=True)[MOST : MOST + 1]
    cut = older[0] if older else None
    if cut is not None:
        rows = rows.filter(occurred_at__gt=cut)
    since = cut or now - SPAN
    quorums = _quorums(setting, since)
    back_tests = {m: BackTest(m, count_once=setting.count_once, quorums=quorums) for m in limits}
    for stored in _stream(rows):
        for back_test in back_tests.values():
            back_test.add(stored)
    answers = {m: back_test.answer() for m, back_test in back_tests.items()}
    return [
        WhatIfRow(m, same_limit(m), answer, since, cut is not None, _sentence(m, answer))
        for m, answer in answers.items()
    ]


def _stream(rows: QuerySet[FailureProtocol]) -> Iterator[Stored]:
    """Yields them in the order in which they occurred; of one server's at one instant in the order of its
    spool."""
    wanted = rows.order_by("occurred_at", "number").values_list("activation_uuid", "server_name", *READ)
    for activation, server, *failure in wanted.iterator(chunk_size=CHUNK):
        yield Stored(Failure(*failure), activation, server)


def _quorums(setting: LaunchSetting, since: datetime) -> dict[UUID, int]:
    """Returns for MANY two different servers, or the only one that an activation had."""
    if setting.spread != Spread.MANY:
        return {}
    recent = Activation.objects.filter(setting=setting).exclude(ended_at__lt=since)
    servers = (
        recent.annotate(servers=Count("runs__server", distinct=True)).order_by().values_list("pk", "servers")
    )
    return {pk: min(NEEDED_OF_MANY, count) or 1 for pk, count in servers[:MOST]}


def _sentence(m: int, answer: Answer) -> str:
    if not answer.failures:
        return _("No failures in the last 30 days: no threshold would have tripped the breaker.")
    if not answer.trips:
        text = _("With M = %(m)s, the breaker would not have tripped in the last 30 days.")
        return text % {"m": number(m)}
    text = ngettext(
        "With M = %(m)s, the breaker would have tripped %(n)s time in the last 30 days, at",
        "With M = %(m)s, the breaker would have tripped %(n)s times in the last 30 days, first at",
        len(answer.trips),
    )
    return text % {"m": number(m), "n": number(len(answer.trips))}
