"""One dead letter whole: body, typed properties, where it came from, what happened to it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.pools.rights import why_not
from broker.amqp.codec import decode
from broker.port import Message, MessageUndecodable
from console.ui.errors import MissingPermission
from console.ui.page import Button, link, page
from console.ui.text import trace_url
from contract.names import BIN, BROKERS_OWN, BYTES_IN_STREAM, NOT_CONVERTIBLE, dead_letter_queue
from contract.typed import from_json, text_of
from dlq import rights
from dlq.dead_letters.masks import MASK, SEE_MASKED, masks_for
from dlq.dead_letters.rules.body import Body, BodyFormat, body_of, cut, hexadecimal, render_body, visible_body
from dlq.models import DeadLetter, ItemState, LetterState, ReplayItem
from dlq.pages.annotations import panel_of_letter
from dlq.pages.dead_letters.case import Case, case_of
from dlq.pages.dead_letters.full_body import body_file, full_body_panel
from dlq.pages.page_head import case_url, list_of, sees_letters
from dlq.replay.operations import title as title_of_job
from dlq.replay.text import BODY_DELETED, OUTCOMES, letter_label
from dlq.search.visibility import found, letters_for, sees_queue
from dlq.trash.queries import PutBack, edited_copies, put_back_of
from exposition.trace import TRACEPARENT, parse
from failures.error_groups.splits import known_in

# -- what can be done with one dead letter, and why some of it cannot be done now ----------------------------


def buttons_of(user: Any, letter: DeadLetter, put_back: PutBack | None = None) -> list[Button]:
    key = letter.setting_key
    stays = _("The message was restored from the trash.") if put_back else not_now(letter)

    redirects = rights.right_to_redirect(user, letter.setting)

    def button(
        name: str, text: str, url: str, icon: str, right: str, tone: str = "", also: str = ""
    ) -> Button:
        refusal = (why_not(user, right, letter.setting) if letter.setting else "") or stays or also
        return Button(name, text, "" if refusal else url, icon, tone, refusal)

    def where(name: str) -> str:
        return link(name, key) + f"?letter={letter.pk}" if letter.setting else ""

    if letter.queue == dead_letter_queue(BIN):
        return [button("put-back", _("Restore…"), where("put_back"), "back", rights.DISCARD, "primary")]
    return [
        button("give-back", _("Replay…"), where("give_back"), "back", rights.GIVE_BACK, "primary"),
        button("edit", _("Edit and replay…"), link("edit_letter", letter.pk), "edit", rights.EDIT),
        button("redirect", _("Redirect…"), where("redirect"), "back", redirects),
        button("discard", _("Discard…"), where("discard"), "trash", rights.DISCARD, "danger"),
    ]


def not_now(letter: DeadLetter) -> str:
    """Returns why nothing at all can be done with it; empty when something can."""
    gone = {
        LetterState.GIVEN_BACK: _("The message was already replayed."),
        LetterState.GONE: _("The message is no longer in the queue."),
        LetterState.DISCARDED: _("The message was discarded. You can restore it from the trash."),
    }
    if letter.state in gone:
        return gone[LetterState(letter.state)]
    if letter.setting is None:
        return _("The message belongs to no existing setting.")
    if letter.queue not in (dead_letter_queue(letter.setting_key), dead_letter_queue(BIN)):
        return _(
            "The message is not in the queue of its setting. An administrator can move it there: "
            "./ma manage adopt_dead_letters."
        )
    if letter.orig_message_id < 0:
        return _("The message was sent directly to the dead-letter queue and was never in the subscription.")
    if ReplayItem.objects.filter(letter=letter, state=ItemState.PLANNED).exists():
        return _("A replay job is about to move the message.")
    return ""


# -- the dead letters before and after one, within the list that it was opened from --------------------------


# The query of the list, carried by every link from it to a dead letter.
LIST = "in"
LONGEST_QUERY = 2000


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Addresses; empty where there is none. `back` is the list itself."""

    newer: str
    older: str
    back: str


def list_query(request: HttpRequest) -> str:
    text = request.GET.get(LIST, "")
    return text if len(text) <= LONGEST_QUERY else ""


def neighbours_of(letter: DeadLetter, rows: QuerySet[DeadLetter], query: str, back: str) -> Neighbours:
    """`rows` are those of the list, whatever order they have: a list is newest first, by number."""
    found = rows.order_by()
    newer = found.filter(pk__gt=letter.pk).order_by("pk").values_list("pk", flat=True).first()
    older = found.filter(pk__lt=letter.pk).order_by("-pk").values_list("pk", flat=True).first()
    carried = f"?{urlencode({LIST: query})}" if query else ""

    def url(pk: Any) -> str:
        return link("letter", pk) + carried if pk else ""

    return Neighbours(url(newer), url(older), back + (f"?{query}" if query else ""))


LOOKS = {BodyFormat.JSON: "JSON", BodyFormat.XML: "XML"}


@require_safe
@sees_letters
def letter_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    letter = get_object_or_404(letters_for(request.user).select_related("setting"), pk=pk)
    message, whole, problem = _read(letter)
    masks, kind = masks_for(request.user), (letter.fingerprint, letter.setting_key)
    body = visible_body(whole, letter, masks) if whole else None
    look, put_back = _look(request, body), put_back_of(letter)
    copy = edited_copies([letter]).get(letter.pk)
    hidden = masks.hides_bytes(letter) if whole is None else body is None
    properties = masks.items(
        letter, [item for item in letter.properties if item.get("name") not in BROKERS_OWN]
    )
    shown = _typed(properties)
    return page(
        request,
        "dlq/dead_letter.html",
        title=_("Message %(n)s") % {"n": letter.pk},
        section="dead_letters",
        crumbs=[(_("Dead letters"), link("dead_letters")), (letter.queue, list_of(letter.queue))],
        letter=letter,
        state=letter_label(letter),
        copy=copy,
        copy_job=title_of_job(copy.job) if copy else "",
        copy_outcome=OUTCOMES[copy.outcome] if copy and copy.outcome else None,
        message=message,
        body=body,
        problem=problem,
        undeliverable=_undeliverable(message),
        look=look,
        tabs=[
            (each.value, LOOKS.get(each) or _tab(each), each is look)
            for each in (body.formats if body else ())
        ],
        as_bytes=look is BodyFormat.HEX or body is None,
        content=render_body(body, look)
        if body
        else MASK
        if hidden
        else hexadecimal(bytes(letter.encoded)[:4096]),
        download=body is whole and not hidden and not letter.body_deleted_at,
        body_deleted=BODY_DELETED if letter.body_deleted_at else "",
        cut=cut(body, look) if body else False,
        properties=shown,
        trace_url=trace_url(parse({name: text for name, _type, text in shown}.get(TRACEPARENT, ""))),
        masked=any(item.get("masked") for item in properties) or hidden or body is not whole,
        annotations=_typed(masks.items(letter, letter.annotations)),
        case=_case(request, letter),
        case_url=case_url(letter.message_key, letter.setting_key) if letter.message_key else "",
        alike=list_of(letter.queue, fingerprint=letter.fingerprint),
        known=known_in([kind]).get(kind) if letter.fingerprint else None,
        neighbours=_neighbours(request, letter),
        opened_in=list_query(request),
        buttons=buttons_of(request.user, letter, put_back),
        put_back=put_back,
        put_back_by=title_of_job(put_back.job) if put_back else "",
        annotation_panel=panel_of_letter(request, letter),
        whole=None if letter.body_deleted_at else full_body_panel(request.user, letter),
        expired=letter.expires_at is not None and letter.expires_at <= timezone.now(),
    )


def _case(request: HttpRequest, letter: DeadLetter) -> Case:
    """A dead letter may say that it is of another setting than its queue's: of that one only what this person
    may see."""
    seen = sees_queue(request.user, dead_letter_queue(letter.setting_key))
    return case_of(letter.message_key if seen else "", letter.setting_key, request.user, letter)


def _neighbours(request: HttpRequest, letter: DeadLetter) -> Neighbours:
    """Returns those in the list that it was opened from, else among those with its state in its queue."""
    query, back = list_query(request), list_of(letter.queue)
    rows = letters_for(request.user).filter(queue=letter.queue)
    if query:
        filters, matching = found(query, request.user, queue=letter.queue)
        return neighbours_of(letter, matching if filters.is_valid() else rows, query, back)
    return neighbours_of(letter, rows.filter(state=letter.state), "", back)


def _read(letter: DeadLetter) -> tuple[Message | None, Body | None, str]:
    if letter.body_deleted_at:
        return None, None, letter.problem
    try:
        message = decode(bytes(letter.encoded))
    except MessageUndecodable as error:
        return None, None, letter.problem or str(error)
    return message, body_of(message, letter.jms_kind), letter.problem


def _undeliverable(message: Message | None) -> str:
    """Returns why no agent was given it; empty: it could be."""
    reason = message.annotations.get(NOT_CONVERTIBLE) if message else None
    if reason is None:
        return ""
    if reason.value == BYTES_IN_STREAM:
        return _(
            "The broker cannot deliver this message to agents: it is a JMS StreamMessage that contains bytes."
        )
    return _(
        "The broker cannot deliver this message to agents: its body does not match its JMS message type."
    )


def _look(request: HttpRequest, body: Body | None) -> BodyFormat:
    """The asked one where the body has it, else the first."""
    if body is None:
        return BodyFormat.HEX
    asked = request.GET.get("body", "")
    return next((look for look in body.formats if look.value == asked), body.formats[0])


def _tab(look: BodyFormat) -> str:
    return _("Text") if look is BodyFormat.TEXT else _("Bytes")


def _typed(items: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Name, AMQP type and text of each; what cannot be read is shown as it is stored."""
    rows = []
    for item in sorted(items, key=lambda item: str(item.get("name"))):
        try:
            text = text_of(from_json({"type": item["type"], "value": item["value"]}))
        except (KeyError, TypeError, ValueError):
            text = str(item.get("value"))
        rows.append((str(item.get("name")), str(item.get("type")), text))
    return rows


@require_safe
@sees_letters
def letter_body(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The bytes of the body as a file: never shown by the browser, whatever they are. Of what is no message
    these are all of its bytes, masked properties among them, of JSON with masked fields these: not for
    everybody."""
    letter = get_object_or_404(letters_for(request.user), pk=pk)
    _message, body, _problem = _read(letter)
    masks = masks_for(request.user)
    if letter.body_deleted_at:
        return HttpResponse(BODY_DELETED, status=410, content_type="text/plain; charset=utf-8")
    if masks.hides_bytes(letter) if body is None else visible_body(body, letter, masks) is not body:
        raise MissingPermission(SEE_MASKED)
    return body_file(letter, body.raw if body else bytes(letter.encoded))
