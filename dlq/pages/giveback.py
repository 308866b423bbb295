"""Before letters are given back: where to, how many, which not and why. Then the job is begun."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from agents.models import LaunchSetting
from agents.pages.amounts import number
from agents.pages.consoles import Text, link, needs, page
from agents.pages.figures import figures_of
from agents.pages.lists import COUNTED, counted
from contract.properties import dead_letter_queue
from dlq.masks import masks_for
from dlq.models import DeadLetter, LetterState, ReplayJob, Scope
from dlq.models.replay import OPEN_JOBS
from dlq.pages.letters import GIVE_BACK, VIEW, asked_for, filter_query, filter_words
from dlq.replay.jobs import LARGEST_SELECTION, ReplayRefused, give_back_all, give_back_letters, replayable

LONGEST_REASON = 2000
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Skipped:
    letter: int
    why: Text


@dataclass(frozen=True, slots=True)
class Scoped:
    """What was asked for: `ids` None = all of the setting. `words` are the filter that found the ids, `query` the
    filter for links back to the list."""

    ids: list[int] | None
    words: list[tuple[str, str]]
    query: str = ""


@dataclass(frozen=True, slots=True)
class Flight:
    """What would happen: `ids` None = all of the setting. `count` as people read it."""

    ids: list[int] | None
    count: str
    going: int
    skipped: list[Skipped]
    letters: list[DeadLetter]


@require_http_methods(["GET", "HEAD", "POST"])
@needs(VIEW, GIVE_BACK)
def give_back_page(request: HttpRequest, key: str) -> HttpResponseBase:
    """`all=1`: all of the setting. `match=1` and a filter: what it finds now, frozen into a selection; later deaths do
    not belong to it. Else `letter=…`. Without any there is nothing to confirm: back to the list."""
    setting = get_object_or_404(LaunchSetting.objects.select_related("destination"), key=key)
    if request.method == "POST":
        every = request.POST.get("all") == "1"
        ids = _ids([*request.POST.getlist("letter"), *request.POST.get("letters", "").split(",")])
        return _begin(request, setting, None if every else ids) if every or ids else _back(request, key, _nothing())
    if request.GET.get("all") == "1":
        return _confirm(request, setting, Scoped(None, []))
    if request.GET.get("match") == "1":
        return _matching(request, setting)
    ids = _ids(request.GET.getlist("letter"))
    return _confirm(request, setting, Scoped(ids, [])) if ids else _back(request, key, _nothing())


def _nothing() -> str:
    return _("Select at least one letter first.")


def _back(request: HttpRequest, key: str, why: str, query: str = "") -> HttpResponseBase:
    messages.warning(request, why)
    return HttpResponseRedirect(link("dead_letters_of", key) + (f"?{query}" if query else ""))


def _matching(request: HttpRequest, setting: LaunchSetting) -> HttpResponseBase:
    filters, query = asked_for(request, replayable(setting)), filter_query(request.GET)
    if not filters.is_valid():  # what is wrong in it would be left out, and more given back than was meant
        return _back(request, setting.key, _("That filter is not understood; nothing was chosen by it."), query)
    ids = sorted(filters.qs.order_by("pk").values_list("pk", flat=True)[: LARGEST_SELECTION + 1])
    if len(ids) > LARGEST_SELECTION:
        why = _("More than %(n)s letters match. Narrow the filter, for example by time, or clear it to give all back.")
        return _back(request, setting.key, why % {"n": number(LARGEST_SELECTION)}, query)
    return _confirm(request, setting, Scoped(ids, filter_words(filters), query))


def _ids(texts: list[str]) -> list[int]:
    return sorted({int(text) for text in texts if text.isdecimal() and len(text) < 19})[: LARGEST_SELECTION + 1]


def _begin(request: HttpRequest, setting: LaunchSetting, ids: list[int] | None) -> HttpResponseBase:
    reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
    options: dict[str, Any] = {"by": request.user, "reason": reason, "now": timezone.now()}
    try:
        job = give_back_all(setting, **options) if ids is None else give_back_letters(setting, ids, **options)
    except ReplayRefused as refused:
        messages.error(request, " ".join(filter(None, [refused.reason, refused.what_to_do])))
        running = refused.more.get("replay")
        return HttpResponseRedirect(link("replay", running) if running else link("dead_letters_of", setting.key))
    return HttpResponseRedirect(link("replay", job.pk))


def _confirm(request: HttpRequest, setting: LaunchSetting, scoped: Scoped) -> HttpResponseBase:
    flight = _all(setting) if scoped.ids is None else _selection(setting, scoped.ids)
    masks = masks_for(request.user)
    return page(
        request,
        "dlq/give_back.html",
        title=_("Give dead letters back?"),
        section="dead_letters",
        crumbs=[
            (_("Dead letters"), link("dead_letters")),
            (dead_letter_queue(setting.key), link("dead_letters_of", setting.key)),
        ],
        setting=setting,
        flight=flight,
        letters=[(letter, masks.head_of_body(letter)) for letter in flight.letters],
        words=scoped.words,
        query=scoped.query,
        frozen=",".join(map(str, flight.ids or ())),
        figures=figures_of(setting),
        running=ReplayJob.objects.filter(setting_key=setting.key, scope=Scope.ALL, state__in=OPEN_JOBS).first()
        if scoped.ids is None
        else None,
    )


def _all(setting: LaunchSetting) -> Flight:
    possible = replayable(setting)
    going = possible.order_by()[: COUNTED + 1].count()
    light = possible.defer("encoded", "properties", "annotations").order_by("-pk")
    return Flight(None, counted(possible), going, [], list(light[:SHOWN]))


def _selection(setting: LaunchSetting, ids: list[int]) -> Flight:
    possible = set(replayable(setting).filter(pk__in=ids).values_list("pk", flat=True))
    found = DeadLetter.objects.filter(pk__in=ids).defer("encoded", "properties", "annotations")
    letters = {letter.pk: letter for letter in found}
    skipped = [Skipped(pk, _why(setting, letters.get(pk))) for pk in ids if pk not in possible]
    going = [letters[pk] for pk in ids if pk in possible]
    return Flight(sorted(possible), number(len(going)), len(going), skipped, going[:SHOWN])


def _why(setting: LaunchSetting, letter: DeadLetter | None) -> str:
    if letter is None:
        return _("there is no such letter")
    if letter.queue != dead_letter_queue(setting.key):
        return _("it is not a dead letter of this setting")
    if letter.state == LetterState.GIVEN_BACK:
        return _("it was given back already")
    if letter.state == LetterState.GONE:
        return _("it is not in the queue any more")
    if letter.orig_message_id < 0:
        return _("somebody sent it to the dead-letter queue: it never was in the subscription")
    return _("it is being given back at this moment")
