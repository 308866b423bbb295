"""Describes what the pages of dead letters begin with. Who gets to them: with the permission to all, with a
right in a pool to those of the pool. What stands above: how many, says who, what can be done."""

from dataclasses import dataclass
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.pools.rights import check_anywhere, may
from agents.provisioning.queue_counts import figures_of, message_count
from console.lists.keyset import counted
from console.operations.refusals import Refused
from console.ui.page import Text, View, link
from contract.names import BIN, DEAD_LETTER_PREFIX, UNKNOWN, dead_letter_queue
from dlq.groups.rules import KINDS, Kind
from dlq.models import LetterState
from dlq.rights import GIVE_BACK, SEE
from dlq.search.visibility import found, letters_for, sees_queue
from failures.error_groups.queries import fingerprint_url
from failures.models import Fingerprint

# -- who gets to the pages -----------------------------------------------------------------------------------


def sees_letters(view: View) -> View:
    """403 for who may see none at all. Being staff is checked by the site; which dead letters, by the
    view."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        check_anywhere(request.user, SEE)
        return view(request, *args, **kwargs)

    return guarded


def check_queue(user: Any, queue: str) -> None:
    """Raises Http404 for a queue in which this person may see nothing."""
    if not sees_queue(user, queue):
        raise Http404


# -- what a service refused, told on the next page that the person sees --------------------------------------


def no_job(request: HttpRequest, refused: Refused, back: str) -> HttpResponseRedirect:
    """Leads to the job that is in the way, else to `back`."""
    messages.error(request, refused.sentence)
    running = refused.more.get("replay")
    return HttpResponseRedirect(link("replay", running) if running else back)


# -- what stands above dead letters, and where lists and case files are --------------------------------------


def queue_head(request: HttpRequest, key: str) -> dict[str, Any]:
    """Raises Http404 where there is no such queue for this person."""
    setting = LaunchSetting.objects.filter(key=key).select_related("destination").first()
    queue = dead_letter_queue(key)
    check_queue(request.user, queue)
    rows = letters_for(request.user).filter(queue=queue)
    if setting is None and key not in (UNKNOWN, BIN) and not rows.exists():
        raise Http404
    figures = figures_of(setting) if setting else None
    return {
        "title": queue,
        "setting": setting,
        "figures": figures,
        "exact": figures.dead if figures else message_count(queue),
        "indexed": counted(rows.filter(state=LetterState.DEAD)),
        "may_give_back": setting is not None and may(request.user, GIVE_BACK, setting),
    }


def head_of_all() -> dict[str, Any]:
    return {
        "title": _("All dead letters"),
        "setting": None,
        "figures": None,
        "exact": None,
        "indexed": "",
        "may_give_back": False,
    }


def tabs(key: str, here: Kind | None, query: str = "") -> list[tuple[Text, str, bool]]:
    """Label, address and whether it is this page; without a kind it is the list of single dead letters.
    `query` is the filter that all of them are asked with."""
    groups = link("letter_groups", key) if key else link("all_letter_groups")
    more = f"&{query}" if query else ""
    found: list[tuple[Text, str, bool]] = [
        (kind.label, f"{groups}?by={kind.name}{more}", kind is here) for kind in KINDS.values()
    ]
    return [*found, (_("Messages"), single_letters(key) + (f"?{query}" if query else ""), here is None)]


def crumbs_of(key: str) -> list[tuple[Text, str]]:
    """The way to a page about dead letters of one setting."""
    return [(_("Dead letters"), link("dead_letters")), (dead_letter_queue(key), link("dead_letters_of", key))]


def single_letters(key: str) -> str:
    return link("dead_letters_of", key) if key else link("all_dead_letters")


def list_of(queue: str, **wanted: str) -> str:
    """The list of its setting; of a foreign queue, which has no page of its own, the list of all narrowed to
    it."""
    if queue.startswith(DEAD_LETTER_PREFIX):
        address = link("dead_letters_of", queue.removeprefix(DEAD_LETTER_PREFIX))
    else:
        address, wanted = link("all_dead_letters"), {"queue": queue, **wanted}
    return f"{address}?{urlencode(wanted)}" if wanted else address


SEE_PROTOCOLS = "failures.view_failureprotocol"


def case_url(key: str, setting_key: str) -> str:
    return f"{link('case')}?{urlencode({'key': key, 'setting': setting_key})}"


# -- a filter in words ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FilterWords:
    """A field of a filter that is set. `value` is hostile text; `url` is of what it names, where this person
    may see that."""

    label: str
    value: str
    url: str = ""


def filter_words(query: str, user: Any) -> list[FilterWords]:
    """Names the error group of a filter by its error, as its id says nothing to people."""
    filters, _rows = found(query, user)
    if not query or not filters.is_valid():
        return []
    named = _group_named(str(filters.form.cleaned_data.get("fingerprint") or ""), user)
    label = str(filters.form.fields["fingerprint"].label)
    return [
        named
        if named is not None and each == (label, str(filters.form.cleaned_data["fingerprint"]))
        else FilterWords(*each)
        for each in filters.words
    ]


def _group_named(fingerprint: str, user: Any) -> FilterWords | None:
    """None for a group that was never counted, or is none."""
    group = Fingerprint.objects.filter(pk=fingerprint).first() if fingerprint else None
    if group is None:
        return None
    name = group.exception_type
    if group.place:
        name = _("%(error)s in %(location)s") % {"error": group.exception_type, "location": group.place}
    url = fingerprint_url(fingerprint) if user.has_perm("failures.view_fingerprint") else ""
    return FilterWords(_("Error group"), name, url)
