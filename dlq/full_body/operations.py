"""Describes what people do with a body that is larger than the index: what fetching it costs, have it fetched
from its queue, stop that, get its bytes."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Avg, QuerySet
from django.http import Http404
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.pools.rights import check_anywhere
from agents.provisioning.queue_counts import message_count
from broker.amqp.codec import decode
from broker.port import MessageUndecodable
from console.jobs.engine import NOBODY, start
from console.operations.operation import Act, Done, ModelPermission, Operation, Resource
from console.operations.refusals import BrokerAway, Refused
from console.ui.errors import MissingPermission
from console.ui.page import link
from dlq.dead_letters.masks import SEE_MASKED, masks_for
from dlq.dead_letters.rules.body import body_of, visible_body
from dlq.models import OPEN_FETCHES, DeadLetter, FetchState, LetterState, WholeFetch
from dlq.rights import SEE
from dlq.search.visibility import SEE_ALL, letters_for

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
        return Refused("not_possible", gettext("Nothing to fetch: the index stores the whole message."))
    if letter.state != LetterState.DEAD:
        return Refused("not_possible", gettext("The message is no longer in the queue."))
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
            gettext("Cannot fetch the body: the limit of %(n)s fetched messages has been reached.")
            % {"n": MOST_KEPT},
            gettext("Try again later: fetched messages are deleted after one day."),
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
    return Refused("exists", gettext("The message has already been fetched or is being fetched now."))


def cancel(letter: DeadLetter, act: Act) -> None:
    """Whoever reads stops within seconds. Raises Refused."""
    with transaction.atomic():
        open_ones = WholeFetch.objects.filter(letter=letter, state__in=OPEN_FETCHES)
        if not open_ones.update(state=FetchState.CANCELLED, ended_at=act.now, **NOBODY):
            raise Refused("ended", gettext("Nothing to stop: the message is not being fetched."))
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
            raise MissingPermission(SEE_MASKED) from None
        return encoded
    body = body_of(message, letter.jms_kind)
    if visible_body(body, letter, masks) is not body:
        raise MissingPermission(SEE_MASKED)
    return body.raw


# -- operations ----------------------------------------------------------------------------------------------


def letters_seen(by: Any) -> QuerySet[DeadLetter]:
    """Raises PermissionDenied for who may see none."""
    check_anywhere(by, SEE)
    return letters_for(by)


class _Bodies(Resource[DeadLetter]):
    def url(self, letter: DeadLetter) -> str:
        return f"{link('letter', letter.pk)}#body"


BODIES = _Bodies(
    name="body",
    rows=DeadLetter.objects.all,
    key="pk",
    route="letters/<int:pk>/",
    view="",
    visible=letters_seen,
    list_page="all_dead_letters",
    page="letter",
    title=_("Full body"),
    setting_key=lambda letter: letter.setting_key,
)


@dataclass(frozen=True, slots=True)
class _SeesLetter:
    def why_not(self, user: Any, letter: DeadLetter) -> str:
        if letters_for(user).filter(pk=letter.pk).exists():
            return ""
        return ModelPermission(SEE_ALL, _("Can view dead letter")).why_not(user, letter)


class _OfBody(Operation[DeadLetter]):
    on, permission, immediate = BODIES, _SeesLetter(), True

    def about(self, letter: DeadLetter) -> dict[str, Any]:
        return {**super().about(letter), "letter": letter.pk, "scope": "one"}


class FetchBody(_OfBody):
    """Starts the fetch. GET returns its cost and progress; `whole/body/` provides the bytes for a day."""

    code, label, address = "body.fetch", _("Fetch full body"), f"{BODIES.route}whole/"

    def run(self, letter: DeadLetter, act: Act, **inputs: Any) -> Done:
        letters = message_count(letter.queue)
        if letters is None:
            raise BrokerAway()
        return Done("", request_body(letter, letters, act))


class CancelFetch(_OfBody):
    """Cancels the fetch in progress."""

    code, label, address = "body.cancel", _("Stop fetching"), f"{BODIES.route}whole/cancel/"

    def run(self, letter: DeadLetter, act: Act, **inputs: Any) -> Done:
        cancel(letter, act)
        return Done("")


class DownloadBody(_OfBody):
    """Provides the bytes as `Done.made`. Refused to users who may not see the masked values in them."""

    code, label = "body.download", _("Download full body")

    def run(self, letter: DeadLetter, act: Act, **inputs: Any) -> Done:
        content = bytes_for(act.by, letter)
        if content is None:
            raise Http404
        act.record()
        return Done("", content)
