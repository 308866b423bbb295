"""The case file of a message: everything known of it, in the order of time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting
from console.audit.models import AuditEntry, AuditResult
from console.ui import amounts
from console.ui.page import link, needs, page
from console.ui.text import trace_url
from contract.names import dead_letter_queue
from contract.outcomes import Outcome
from contract.typed import head_and_tail
from dlq.dead_letters.masks import masks_for
from dlq.edit.queries import edits_of
from dlq.models import Action, DeadLetter, ItemState, KnownFault, LetterReport, Note, ReplayItem
from dlq.models.replay import DELIVERING
from dlq.outcomes.settlement import redirected_to
from dlq.pages.dead_letters import events
from dlq.pages.dead_letters.events import Event
from dlq.pages.page_head import SEE_PROTOCOLS, check_queue, sees_letters
from dlq.search.visibility import sees_queue
from exposition.trace import parse
from failures.models import FailureProtocol, RecoveredMessage

BOUND = 200
# Tracebacks are long: those of the latest failures only, and of each what fits a screen.
TRACEBACKS = 10
TRACEBACK_LENGTH = 6000


@dataclass(frozen=True, slots=True)
class Case:
    events: list[Event]
    more: bool
    protocols: int
    deaths: int
    replays: int
    weak: bool
    traceparent: str

    @property
    def sentence(self) -> str:
        parts = [
            ngettext("%(n)s failure", "%(n)s failures", self.protocols)
            % {"n": amounts.number(self.protocols)},
            ngettext("dead-lettered %(n)s time", "dead-lettered %(n)s times", self.deaths)
            % {"n": amounts.number(self.deaths)},
            ngettext("replayed %(n)s time", "replayed %(n)s times", self.replays)
            % {"n": amounts.number(self.replays)},
        ]
        return ", ".join(parts)


def case_of(key: str, setting_key: str, user: Any, letter: DeadLetter | None = None) -> Case:
    """Reads the case as this person may see it. A dead letter without a key has only itself: its death, its
    replays."""
    same = {"message_key": key, "setting_key": setting_key}
    letters = list(DeadLetter.objects.filter(**same)[:BOUND]) if key else [letter] if letter else []
    protocols = (
        list(FailureProtocol.objects.filter(**same).defer("traceback", "properties")[:BOUND]) if key else []
    )
    moves = ReplayItem.objects.filter(letter__in=letters).exclude(state=ItemState.PLANNED)
    items = list(moves.select_related("job__by", "slice", "letter", "died_as").order_by("-pk")[:BOUND])
    recovered = list(RecoveredMessage.objects.filter(**same)[:BOUND]) if key else []
    reports = list(LetterReport.objects.filter(**same, result="handled")[:BOUND]) if key else []
    annotations = _annotations(same, letters) if key else []
    tried = list(
        AuditEntry.objects.filter(letter__in=[each.pk for each in letters]).exclude(result=AuditResult.DONE)[
            :BOUND
        ]
    )
    tracebacks = _tracebacks(protocols) if user.has_perm(SEE_PROTOCOLS) else {}
    found = [
        *(events.failure(protocol, tracebacks.get(protocol.pk, "")) for protocol in protocols),
        *(events.death(each, explained=_explained(each, protocols)) for each in letters),
        *_moves(items, user),
        *_elsewhere(items, user),
        *_arrivals(key, setting_key, user),
        *map(events.recovery, recovered),
        *map(events.report, reports),
        *annotations,
        *map(events.tried, tried),
        *events.waiting_events_of(key, setting_key, letters),
        *(events.answer_events_of(key, setting_key) if key else ()),
    ]
    return Case(
        events=sorted(found, key=lambda event: event.at),
        more=any(len(rows) == BOUND for rows in (protocols, letters, items, recovered, reports)),
        protocols=sum(protocol.outcome != Outcome.NOTED.value for protocol in protocols),
        deaths=sum(1 for letter in letters if letter.died_here),
        replays=sum(
            1 for item in items if item.state == ItemState.GIVEN_BACK and item.job.action in DELIVERING
        ),
        weak=any(each.message_key_weak for each in protocols)
        or any(each.message_key_weak for each in letters),
        traceparent=next((each.traceparent for each in protocols if each.traceparent), ""),
    )


def _explained(letter: DeadLetter, protocols: Iterable[FailureProtocol]) -> bool:
    """Returns whether the failure that it died of is among them, or none is known."""
    return letter.protocol_at is None or any(each.occurred_at == letter.protocol_at for each in protocols)


def _tracebacks(protocols: list[FailureProtocol]) -> dict[Any, str]:
    """Newest first, as `protocols` are."""
    wanted = [protocol.pk for protocol in protocols[:TRACEBACKS]]
    rows = FailureProtocol.objects.filter(pk__in=wanted).order_by().values_list("pk", "traceback")
    return {pk: head_and_tail(text, TRACEBACK_LENGTH) for pk, text in rows}


def _moves(items: list[ReplayItem], user: Any) -> Iterable[Event]:
    edits = edits_of(items, masks_for(user))
    for item in items:
        yield events.moved(item, edits.get(item.pk))


def _elsewhere(items: list[ReplayItem], user: Any) -> Iterable[Event]:
    """Deaths of what was redirected, in settings that this person may see."""
    for item in items:
        died = item.died_as if item.job.action == Action.REDIRECT else None
        if died is not None and sees_queue(user, died.queue):
            yield events.death(died, explained=False)


def _arrivals(key: str, setting_key: str, user: Any) -> Iterable[Event]:
    for item in redirected_to(setting_key, key)[:BOUND]:
        yield events.arrived(item, seen=sees_queue(user, dead_letter_queue(item.job.setting_key)))


def _annotations(same: dict[str, str], letters: list[DeadLetter]) -> list[Event]:
    """Returns those of the case, and of the fingerprints that its dead letters died of."""
    prints = {letter.fingerprint for letter in letters if letter.fingerprint}
    about = Q(message_key=same["message_key"]) | Q(fingerprint__in=prints)
    notes = Note.objects.filter(about, setting_key=same["setting_key"])[:BOUND]
    faults = KnownFault.objects.filter(about, setting_key=same["setting_key"])[:BOUND]
    return [*map(events.noted, notes), *map(events.known, faults)]


@require_safe
@sees_letters
@needs(SEE_PROTOCOLS)
def case_page(request: HttpRequest) -> HttpResponseBase:
    key, setting_key = request.GET.get("key", "")[:255], request.GET.get("setting", "")[:300]
    check_queue(request.user, dead_letter_queue(setting_key))
    case = case_of(key, setting_key, request.user)
    return page(
        request,
        "dlq/case.html",
        title=_("Case file"),
        section="protocols",
        crumbs=[(_("Failures"), link("protocols"))],
        key=key,
        setting_key=setting_key,
        setting=LaunchSetting.objects.filter(key=setting_key).first(),
        case=case,
        trace_url=trace_url(parse(case.traceparent)),
        latest=DeadLetter.objects.filter(message_key=key, setting_key=setting_key).order_by("-pk").first(),
    )
