"""What fetching a letter whole costs; asking for it, and cancelling."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Avg
from django.utils.translation import gettext as _

from console.audit.log import record
from console.task_queue import send
from dlq.models import OPEN_FETCHES, DeadLetter, FetchState, LetterState, WholeFetch

RUN_TASK = "dlq.fetch_whole"
TASK_EXPIRES = 60
# Results kept at a time, on the whole site, and for how long: each may have 100 MB.
MOST_KEPT = 20
KEPT = timedelta(days=1)
# Letters and bytes that a walk reads in a second, seen on a small machine.
LETTERS_A_SECOND, BYTES_A_SECOND = 4_000, 30_000_000
SAMPLE = 100


class FetchRefused(Exception):
    """Nothing was begun or changed. `code` for programs, `reason` and `what_to_do` for people."""

    def __init__(self, code: str, reason: str, what_to_do: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason, self.what_to_do = code, reason, what_to_do


@dataclass(frozen=True, slots=True)
class Cost:
    """At most: the letter may lie at the head or at the end. `bytes` is judged by the newest letters."""

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


def why_not(letter: DeadLetter) -> str:
    """Why it cannot be fetched; empty when it can."""
    if not letter.truncated or letter.problem:
        return _("The index keeps all that there is of it.")
    if letter.state != LetterState.DEAD:
        return _("It is not in the queue any more.")
    return ""


def ask(letter: DeadLetter, *, by: Any, now: datetime, letters: int) -> WholeFetch:
    """The row is the truth, the task only makes it sooner. Raises FetchRefused."""
    if refusal := why_not(letter):
        raise FetchRefused("not_possible", refusal)
    before = latest(letter)
    if before is not None and before.state in (*OPEN_FETCHES, FetchState.DONE):
        raise FetchRefused("exists", _("It is being fetched, or was fetched already."))
    if WholeFetch.objects.filter(state__in=(*OPEN_FETCHES, FetchState.DONE)).count() >= MOST_KEPT:
        raise FetchRefused(
            "too_many",
            _("%(n)s whole letters are kept already.") % {"n": MOST_KEPT},
            _("Each is dropped a day later."),
        )
    name = by.get_username() if isinstance(by, User) else ""
    try:
        with transaction.atomic():
            fetch = WholeFetch.objects.create(
                letter=letter,
                by=by if isinstance(by, User) else None,
                by_name=name[:150],
                at=now,
                letters=letters,
            )
            _told("whole_asked", letter, by, now, {"letters": letters})
    except IntegrityError as error:
        raise FetchRefused("exists", _("It is being fetched, or was fetched already.")) from error
    transaction.on_commit(lambda: start(fetch))
    return fetch


def cancel(letter: DeadLetter, *, by: Any, now: datetime) -> None:
    """Whoever reads stops within seconds. Raises FetchRefused."""
    with transaction.atomic():
        open_ones = WholeFetch.objects.filter(letter=letter, state__in=OPEN_FETCHES)
        if not open_ones.update(state=FetchState.CANCELLED, ended_at=now, lease_until=None):
            raise FetchRefused("ended", _("It is not being fetched."))
        _told("whole_cancelled", letter, by, now, {})


def taken(letter: DeadLetter, *, by: Any, now: datetime) -> None:
    """Somebody is about to get the bytes."""
    _told("whole_downloaded", letter, by, now, {})


def start(fetch: WholeFetch) -> None:
    """Best effort: beat finds one that nobody works on."""
    send(RUN_TASK, str(fetch.pk), expires=TASK_EXPIRES)


def _told(action: str, letter: DeadLetter, by: Any, now: datetime, counts: dict[str, int]) -> None:
    target, key = f"letter:{letter.pk}", letter.setting_key
    record(
        action, by=by, now=now, target=target, setting_key=key, letter=letter.pk, scope="one", counts=counts
    )
