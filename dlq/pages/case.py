"""The case file of a message: everything known of it, in the order of time."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting
from agents.pages import amounts
from agents.pages.consoles import link, needs, page
from dlq.models import DeadLetter, ItemState, LetterReport, ReplayItem
from dlq.pages.letters import VIEW
from failures.models import FailureProtocol, RecoveredMessage

BOUND = 200


@dataclass(frozen=True, slots=True)
class Event:
    """`what` and `detail` are hostile text, to be made visible; `url` is where the row behind it is shown."""

    at: datetime
    tone: str
    what: str
    detail: str = ""
    url: str = ""
    letter: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    events: list[Event]
    more: bool
    protocols: int
    deaths: int
    replays: int
    weak: bool

    @property
    def sentence(self) -> str:
        parts = [
            ngettext("%(n)s failure", "%(n)s failures", self.protocols) % {"n": amounts.number(self.protocols)},
            ngettext("dead %(n)s time", "dead %(n)s times", self.deaths) % {"n": amounts.number(self.deaths)},
            ngettext("given back %(n)s time", "given back %(n)s times", self.replays)
            % {"n": amounts.number(self.replays)},
        ]
        return ", ".join(parts)


def case_url(key: str, setting_key: str) -> str:
    return f"{link('case')}?{urlencode({'key': key, 'setting': setting_key})}"


def case_of(key: str, setting_key: str) -> Case:
    if not key:
        return Case([], False, 0, 0, 0, False)
    same = {"message_key": key, "setting_key": setting_key}
    protocols = list(FailureProtocol.objects.filter(**same).defer("traceback", "properties")[:BOUND])
    letters = list(DeadLetter.objects.filter(**same).defer("encoded", "properties", "annotations")[:BOUND])
    items = list(ReplayItem.objects.filter(letter__in=letters).select_related("job__by", "letter")[:BOUND])
    recovered = list(RecoveredMessage.objects.filter(**same)[:BOUND])
    reports = list(LetterReport.objects.filter(**same)[:BOUND])
    events = [
        *map(_failure, protocols),
        *map(_death, letters),
        *map(_giving, (item for item in items if item.state != ItemState.PLANNED)),
        *map(_recovery, recovered),
        *map(_report, (report for report in reports if report.result == "handled")),
    ]
    return Case(
        events=sorted(events, key=lambda event: event.at),
        more=any(len(rows) == BOUND for rows in (protocols, letters, items, recovered, reports)),
        protocols=len(protocols),
        deaths=len(letters),
        replays=sum(1 for item in items if item.state == ItemState.GIVEN_BACK),
        weak=any(each.message_key_weak for each in protocols) or any(each.message_key_weak for each in letters),
    )


def _failure(protocol: FailureProtocol) -> Event:
    what = _("Failed at attempt %(n)s: %(kind)s") % {
        "n": amounts.number(protocol.attempt),
        "kind": protocol.exception_type,
    }
    detail = f"{protocol.server_name} · {protocol.exception_text.strip()}"
    tone = "warn" if protocol.temporary else "bad"
    return Event(protocol.occurred_at, tone, what, detail, link("protocol", protocol.pk))


def _death(letter: DeadLetter) -> Event:
    what = _("Dead in %(queue)s") % {"queue": letter.queue}
    number = _("letter %(n)s") % {"n": letter.pk}
    return Event(letter.seen_at, "bad", what, number, link("letter", letter.pk), letter.pk)


def _giving(item: ReplayItem) -> Event:
    words = {
        ItemState.GIVEN_BACK: _("Given back to %(key)s"),
        ItemState.NOT_FOUND: _("To be given back to %(key)s, but it was not there any more"),
        ItemState.FAILED_TO_MOVE: _("Could not be given back to %(key)s"),
    }
    what = words[ItemState(item.state)] % {"key": item.job.setting_key}
    by = item.job.by.get_username() if item.job.by else _("unknown person")
    detail = f"{by} · {item.job.reason}" if item.job.reason else by
    return Event(item.state_at, "info", what, detail, link("replay", item.job_id))


def _recovery(recovered: RecoveredMessage) -> Event:
    what = _("Handled well at attempt %(n)s") % {"n": amounts.number(recovered.attempt)}
    return Event(recovered.occurred_at, "ok", what, recovered.server_name)


def _report(report: LetterReport) -> Event:
    return Event(report.occurred_at, "ok", _("Handled well after it was given back"), report.server_name)


@require_safe
@needs(VIEW, "failures.view_failureprotocol")
def case_page(request: HttpRequest) -> HttpResponseBase:
    key, setting_key = request.GET.get("key", "")[:255], request.GET.get("setting", "")[:300]
    return page(
        request,
        "dlq/case.html",
        title=_("Case file"),
        section="protocols",
        crumbs=[(_("Protocols"), link("protocols"))],
        key=key,
        setting_key=setting_key,
        setting=LaunchSetting.objects.filter(key=setting_key).first(),
        case=case_of(key, setting_key),
        latest=DeadLetter.objects.filter(message_key=key, setting_key=setting_key).order_by("-pk").first(),
    )
