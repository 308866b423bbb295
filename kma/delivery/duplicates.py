"""The guard against repeats: what this server has handled well within the window is accepted without its
agent.

A handling that returned is remembered before its message is accepted, one that sent something after its
transaction has committed. Killed

before it is remembered: the message comes back, or a repeat of it comes, and is handled once more; after
that, before the acceptance: the message comes back and is accepted as a repeat of itself, for it was handled.

So a message that nobody handled is never taken for a repeat. Two of one key that are at hand at the same time
are handled one after the other.
"""

import hashlib
import json
from collections import deque
from typing import Any

from broker.amqp.codec import decode
from broker.amqp.python_values import decode_natural
from broker.port import MessageUndecodable
from contract.message_key import POINTER, PROPERTY, found_at, message_key
from contract.typed import canonical
from kma.delivery.effects import RunFacts
from kma.delivery.in_flight import InFlight
from kma.spool.file import HandledKeys, HandledKeysUpdate


class DuplicateGuard:
    """One thread, the run's. `keys` None: nothing can be remembered, and nothing is guarded."""

    def __init__(self, facts: RunFacts, keys: HandledKeys | None) -> None:
        self._facts = facts
        self._keys = keys
        self._key = facts.desired.duplicate_key if keys is not None else ""
        self._at_hand: dict[bytes, InFlight] = {}
        self._held: dict[bytes, deque[InFlight]] = {}
        self._handled: list[bytes] = []
        self._new_repeats = 0
        self.repeats = keys.repeats(facts.key) if keys is not None else 0

    def repeats_one(self, work: InFlight) -> bool:
        """Whether the message is a repeat; then it is counted. A message without the key is none."""
        if not self._key:
            return False
        work.digest = work.digest or digest_of(self._key, work.encoded)
        if not work.digest or not self._knows(work.digest):
            return False
        self.repeats += 1
        self._new_repeats += 1
        return True

    def admit(self, work: InFlight) -> bool:
        """False: one of the same key is at hand; `freed` gives it when that has ended."""
        if not work.digest:
            return True
        if work.digest in self._at_hand:
            self._held.setdefault(work.digest, deque()).append(work)
            return False
        self._at_hand[work.digest] = work
        return True

    def handled(self, work: InFlight) -> None:
        """Well, and what it sent is committed."""
        if work.digest:
            self._handled.append(work.digest)

    def over(self, work: InFlight) -> None:
        """Its handling has ended, however."""
        if work.digest and self._at_hand.get(work.digest) is work:
            del self._at_hand[work.digest]

    def freed(self) -> list[InFlight]:
        """Those that waited for one that has ended: to be looked at as if they came now."""
        free = [digest for digest in self._held if digest not in self._at_hand]
        return [work for digest in free for work in self._held.pop(digest)]

    def forget(self) -> None:
        """What was delivered comes again, or the run ends."""
        self._at_hand.clear()
        self._held.clear()

    @property
    def pending(self) -> bool:
        return bool(self._handled or self._new_repeats)

    def to_store(self) -> list[HandledKeysUpdate]:
        if not self.pending:
            return []
        desired = self._facts.desired
        told = tuple(self._handled)
        return [
            HandledKeysUpdate(
                desired.setting, self._facts.key, desired.duplicate_window_seconds, told, self._new_repeats
            )
        ]

    def stored(self) -> None:
        self._handled.clear()
        self._new_repeats = 0

    def _knows(self, digest: bytes) -> bool:
        desired = self._facts.desired
        assert self._keys is not None
        if digest in self._handled:
            return True
        return self._keys.knows(desired.setting, digest, desired.duplicate_window_seconds)


def digest_of(key: str, encoded: bytes) -> bytes:
    """SHA-256 of the message's key with its type; empty where the message has none."""
    try:
        value = _value(key, encoded)
    except (MessageUndecodable, ValueError, RecursionError):
        return b""
    return hashlib.sha256(value).digest() if value is not None else b""


def _value(key: str, encoded: bytes) -> bytes | None:
    if key.startswith(POINTER):
        found = found_at(key.removeprefix(POINTER), _json(decode_natural(encoded).body))
        return None if found is None else json.dumps(found, sort_keys=True).encode()
    message = decode(encoded)
    if key.startswith(PROPERTY):
        item = message.properties.get(key.removeprefix(PROPERTY))
        return None if item is None or item.value in (None, "", b"") else canonical(item)
    found_key = message_key(message.message_id, message.body_section, message.properties)
    return None if found_key.weak else found_key.text.encode("utf-8", "surrogatepass")


def _json(body: Any) -> Any:
    """Raises ValueError for what is no JSON."""
    if isinstance(body, (dict, list)):
        raise ValueError("a map is no JSON text")
    if not isinstance(body, (str, bytes)):
        raise ValueError("no text")
    return json.loads(body)
