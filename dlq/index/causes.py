"""Describes why dead letters died: the last protocol with their key and setting, whichever of the two came
first.

A message that was replayed reports the id of the dead letter it was (`letter_id`). Ids of one broker grow:
what failed between two deaths carries an id below that of the second, so protocols of one chapter explain no
other.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from dlq.models import DeadLetter
from failures.intake.sanitize import fit
from failures.models import FailureProtocol

Case = tuple[str, str]

# Equal messages without an id share a key: of so many dead letters at most a new protocol explains each.
MOST = 1000
LONGEST_TEXT = 2000
# What a dead letter takes over from its protocol: all that is left to explain it when retention has deleted
# that.
TAKEN = (
    "exception_type",
    "exception_text",
    "fingerprint",
    "place",
    "server_name",
    "activation_uuid",
    "agent_version",
)
USED = ("setting_key", "message_key", "letter_id", "occurred_at", "attempt", *TAKEN)


def explain(letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    """Fills dead letters in from protocols that are here; those that it changed, not saved."""
    by_case: dict[Case, list[DeadLetter]] = defaultdict(list)
    for letter in letters:
        if letter.message_key:
            by_case[letter.setting_key, letter.message_key].append(letter)
    changed = {}
    for protocol in _latest(by_case.keys()):
        for letter in by_case[protocol.setting_key, protocol.message_key]:
            if _explain(letter, protocol):
                changed[letter.orig_message_id] = letter
    return list(changed.values())


def explain_stored(letters: Iterable[DeadLetter]) -> None:
    """Once more after the commit: a protocol whose transaction ended meanwhile saw no dead letter, nor the
    dead letter it."""
    _save(explain(letters))


def _latest(cases: Collection[Case]) -> list[FailureProtocol]:
    """The last protocol of each case; several where they are of one instant."""
    keys, settings = {key for _, key in cases}, {setting for setting, _ in cases}
    protocols = FailureProtocol.objects.filter(message_key__among=keys, setting_key__in=settings).order_by()
    instants = protocols.values_list("setting_key", "message_key").annotate(Max("occurred_at"))
    last = {(setting, key): at for setting, key, at in instants if (setting, key) in cases}
    found = protocols.filter(occurred_at__in=set(last.values())).only(*USED)
    return [row for row in found if last.get((row.setting_key, row.message_key)) == row.occurred_at]


def protocols_arrived(protocols: Sequence[FailureProtocol], now: datetime) -> None:
    """Called inside the intake's transaction. Looks again after it, as `explain_stored`."""
    _explain_by(protocols)
    transaction.on_commit(lambda: _explain_by(protocols), robust=True)


def _explain_by(protocols: Sequence[FailureProtocol]) -> None:
    """Fills stored dead letters in from protocols that came after them."""
    by_case: dict[Case, list[FailureProtocol]] = defaultdict(list)
    for protocol in sorted(protocols, key=lambda protocol: protocol.occurred_at):
        if protocol.message_key:
            by_case[protocol.setting_key, protocol.message_key].append(protocol)
    letters = DeadLetter.objects.filter(
        message_key__among={key for _, key in by_case}, setting_key__in={key for key, _ in by_case}
    )
    fields = ("setting_key", "message_key", "orig_message_id", "protocol_at", "delivery_count")
    changed = []
    for letter in letters.only(*fields, *TAKEN).order_by("-pk")[:MOST]:
        found = [
            _explain(letter, protocol)
            for protocol in by_case.get((letter.setting_key, letter.message_key), ())
        ]
        if any(found):
            changed.append(letter)
    _save(changed)


def _save(letters: Sequence[DeadLetter]) -> None:
    """Saves in one order, so that two writers never wait for each other in a circle."""
    ordered = sorted(letters, key=lambda letter: letter.pk)
    DeadLetter.objects.bulk_update(ordered, [*TAKEN, "protocol_at", "delivery_count"], batch_size=200)


def _explain(letter: DeadLetter, protocol: FailureProtocol) -> bool:
    """Returns whether the protocol says more of this death than what the dead letter knows."""
    if (protocol.letter_id or 0) >= letter.orig_message_id > 0:
        return False  # of a later chapter
    if letter.protocol_at is not None and protocol.occurred_at <= letter.protocol_at:
        return False
    for name in TAKEN:
        setattr(letter, name, getattr(protocol, name))
    letter.exception_text = fit(letter.exception_text, LONGEST_TEXT)
    letter.protocol_at = protocol.occurred_at
    letter.delivery_count = protocol.attempt
    return True
