"""Describes what fetching a dead letter whole costs; asking for it, and cancelling."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Avg
from django.utils.translation import gettext as _

from broker.amqp.codec import decode
from broker.port import MessageUndecodable
from console.jobs.job import NOBODY
from console.jobs.worker import start
from console.operations.operation import Act
from console.operations.refusals import Refused
from dlq.dead_letters.masks import masks_for
from dlq.dead_letters.rules.body import body_of, visible_body
from dlq.models import OPEN_FETCHES, DeadLetter, FetchState, LetterState, WholeFetch

# Results kept at a time, on the whole site, and for how long: each may have 100 MB.
MOST_KEPT = 20
KEPT = timedelta(days=1)
# Dead letters and bytes that a walk reads in a second, seen on a small machine.
LETTERS_A_SECOND, BYTES_A_SECOND = 4_000, 30_000_000
SAMPLE = 100


@dataclass(frozen=True, slots=True)
class Cost:
    """The upper bound of the cost: the dead letter may lie at the head or at the end. `bytes` is judged by
    the newest dead letters."""

    letters: int
    bytes: int

    @property
    def seconds(self) -> int:
        return 1 + self.letters // LETTERS_A_SECOND + self.bytes // BYTES_A_SECOND


def cost_of(letter: DeadLetter, letters: int) -> Cost:
    """`letters`: how many the broker counts in the queue."""
    newest = (
        DeadLetter.objects.filter(queue=letter.queue, state=LetterState.DEAD)
        .order_by("-pk")
        .values("pk")[:SAMPLE]
    )
    mean = DeadLetter.objects.filter(pk__in=list(newest.values_list("pk", flat=True))).aggregate(
        mean=Avg("size")
    )
    return Cost(letters, int(letters * (mean["mean"] or 0)))


def latest(letter: DeadLetter) -> WholeFetch | None:
    """Without the bytes."""
    return WholeFetch.objects.filter(letter=letter).defer("encoded").order_by("-pk").first()


def refusal(letter: DeadLetter) -> Refused | None:
    """Returns why it cannot be fetched at all."""
    if not letter.truncated or letter.problem:
        return Refused("not_possible", _("The index keeps all that there is of it."))
    if letter.state != LetterState.DEAD:
        return Refused("not_possible", _("It is not in the queue any more."))
    return None


def request_body(letter: DeadLetter, letters: int, act: Act) -> WholeFetch:
    """The row is the truth, the task only makes it sooner. `letters`: as in `cost_of`. Raises Refused."""
    if refused := refusal(letter):
        raise refused
    before = latest(letter)
    if before is not None and before.state in (*OPEN_FETCHES, FetchState.DONE):
        raise _exists()
    if WholeFetch.objects.filter(state__in=(*OPEN_FETCHES, FetchState.DONE)).count() >= MOST_KEPT:
        raise Refused(
            "too_many",
            _("%(n)s whole letters are kept already.") % {"n": MOST_KEPT},
            _("Each is dropped a day later."),
        )
    person = act.by if isinstance(act.by, User) else None
    name = person.get_username() if person else ""
    try:
        with transaction.atomic():
            fetch = WholeFetch.objects.create(
                letter=letter, by=person, by_name=name[:150], at=act.now, letters=letters
            )
            act.record(about={"counts": {"letters": letters}})
    except IntegrityError as error:
        raise _exists() from error
    transaction.on_commit(lambda: start(fetch))
    return fetch


def _exists() -> Refused:
    return Refused("exists", _("It is being fetched, or was fetched already."))


def cancel(letter: DeadLetter, act: Act) -> None:
    """Whoever reads stops within seconds. Raises Refused."""
    with transaction.atomic():
        open_ones = WholeFetch.objects.filter(letter=letter, state__in=OPEN_FETCHES)
        if not open_ones.update(state=FetchState.CANCELLED, ended_at=act.now, **NOBODY):
            raise Refused("ended", _("It is not being fetched."))
        act.record()


# -- the bytes of a dead letter that was fetched whole, for who may see them ---------------------------------


def bytes_for(user: Any, letter: DeadLetter) -> bytes | None:
    """The body; None: it was not fetched, or was dropped. Raises PermissionDenied where something in it is
    masked for this person, as with the dead letters that are kept whole."""
    fetch = WholeFetch.objects.filter(letter=letter, state=FetchState.DONE).order_by("-pk").first()
    if fetch is None or fetch.encoded is None:
        return None
    encoded, masks = bytes(fetch.encoded), masks_for(user)
    try:
        message = decode(encoded)
    except MessageUndecodable:
        if masks.hides_bytes(letter):
            raise PermissionDenied from None
        return encoded
    body = body_of(message, letter.jms_kind)
    if visible_body(body, letter, masks) is not body:
        raise PermissionDenied
    return body.raw
