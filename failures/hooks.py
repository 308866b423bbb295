"""Describes what this app asks of those above it. They implement it when they are ready."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from console.hooks import Hook
from failures.intake.kinds.record_kind import RecordKind
from failures.models import FailureProtocol

# Kinds of records whose rows are theirs.
record_kinds: Hook[[], RecordKind[Any]] = Hook()
# Called inside the intake's transaction, once its runs are locked: it must be short, and what it raises rolls
# the whole batch back.
protocols_stored: Hook[[Sequence[FailureProtocol], datetime], None] = Hook()
# (setting key, message keys): {message key: when it was last known to have ended, as handled or dead}.
message_endings: Hook[[str, Collection[str]], Mapping[str, datetime]] = Hook()
# (activation, message keys): {message key: how often a message with it that was given back from a dead-letter
# queue was handled well in this activation}.
handled_after_return: Hook[[UUID, Collection[str]], Mapping[str, int]] = Hook()
# (a person, None: somebody without any right): {setting key: names of properties that they may not see}.
masked_properties: Hook[[Any], Mapping[str, frozenset[str]]] = Hook()
# ((setting key, message key)s): where these messages are, as a word of
# `failures.protocols.messages.MessageState`, and since when.
message_places: Hook[[Collection[tuple[str, str]]], Mapping[tuple[str, str], tuple[str, datetime]]] = Hook()
