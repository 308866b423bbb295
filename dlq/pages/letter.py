"""One dead letter whole: body, typed properties, where it came from, what happened to it."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from broker.amqp_codec import decode
from broker.errors import MessageUndecodable
from broker.port import Message
from console.ui.page import link, page
from contract.properties import BROKERS_OWN, BYTES_IN_STREAM, NOT_CONVERTIBLE, dead_letter_queue
from contract.typed import from_json, text_of
from dlq.binned.returns import put_back_of
from dlq.bodies import Body, Look, body_of, cut, hexadecimal, shown
from dlq.letters_for import found, letters_for, queues_for
from dlq.masked_bodies import told
from dlq.masking import MASK
from dlq.masks import masks_for
from dlq.models import DeadLetter
from dlq.pages.access import letter_or_404, sees_letters
from dlq.pages.case import Case, case_of, case_url
from dlq.pages.letter_buttons import buttons_of
from dlq.pages.list_of import list_of
from dlq.pages.neighbours import Neighbours, list_query, neighbours_of
from dlq.pages.remarks import panel_of_letter
from dlq.pages.shown import BODY_DELETED, LETTERS
from dlq.pages.whole import body_file, whole_panel
from dlq.replay.operations import title as title_of_job
from failures.fingerprints.parts import known_in

LOOKS = {Look.JSON: "JSON", Look.XML: "XML"}


@require_safe
@sees_letters
def letter_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    letter = letter_or_404(request.user, pk, DeadLetter.objects.select_related("setting"))
    message, whole, problem = _read(letter)
    masks, kind = masks_for(request.user), (letter.fingerprint, letter.setting_key)
    body = told(whole, letter, masks) if whole else None
    look, put_back = _look(request, body), put_back_of(letter)
    hidden = masks.hides_bytes(letter) if whole is None else body is None
    properties = masks.items(
        letter, [item for item in letter.properties if item.get("name") not in BROKERS_OWN]
    )
    return page(
        request,
        "dlq/letter.html",
        title=_("Letter %(n)s") % {"n": letter.pk},
        section="dead_letters",
        crumbs=[(_("Dead letters"), link("dead_letters")), (letter.queue, list_of(letter.queue))],
        letter=letter,
        state=LETTERS[letter.state],
        message=message,
        body=body,
        problem=problem,
        undeliverable=_undeliverable(message),
        look=look,
        tabs=[
            (each.value, LOOKS.get(each) or _tab(each), each is look) for each in (body.looks if body else ())
        ],
        content=shown(body, look) if body else MASK if hidden else hexadecimal(bytes(letter.encoded)[:4096]),
        download=body is whole and not hidden and not letter.body_deleted_at,
        body_deleted=BODY_DELETED if letter.body_deleted_at else "",
        cut=cut(body, look) if body else False,
        properties=_typed(properties),
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
        remarks=panel_of_letter(request, letter),
        whole=None if letter.body_deleted_at else whole_panel(request.user, letter),
        expired=letter.expires_at is not None and letter.expires_at <= timezone.now(),
    )


def _case(request: HttpRequest, letter: DeadLetter) -> Case:
    """A letter may say that it is of another setting than its queue's: of that one only what this person may
    see."""
    mine = queues_for(request.user)
    seen = mine is None or dead_letter_queue(letter.setting_key) in mine
    return case_of(letter.message_key if seen else "", letter.setting_key, request.user, letter)


def _neighbours(request: HttpRequest, letter: DeadLetter) -> Neighbours:
    """In the list that it was opened from, else among those that share its fate in its queue."""
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
    """Why no agent was given it; empty: it could be."""
    reason = message.annotations.get(NOT_CONVERTIBLE) if message else None
    if reason is None:
        return ""
    if reason.value == BYTES_IN_STREAM:
        return _("The broker cannot deliver it to agents: it is a JMS stream message that holds bytes.")
    return _("The broker cannot deliver it to agents: its body is not what its JMS kind says.")


def _look(request: HttpRequest, body: Body | None) -> Look:
    """The asked one where the body has it, else the first."""
    if body is None:
        return Look.HEX
    asked = request.GET.get("body", "")
    return next((look for look in body.looks if look.value == asked), body.looks[0])


def _tab(look: Look) -> str:
    return _("Text") if look is Look.TEXT else _("Bytes")


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
    letter = letter_or_404(request.user, pk)
    _message, body, _problem = _read(letter)
    masks = masks_for(request.user)
    if letter.body_deleted_at:
        return HttpResponse(BODY_DELETED, status=410, content_type="text/plain; charset=utf-8")
    if masks.hides_bytes(letter) if body is None else told(body, letter, masks) is not body:
        raise PermissionDenied
    return body_file(letter, body.raw if body else bytes(letter.encoded))
