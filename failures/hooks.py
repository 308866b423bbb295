"""Describes what the intake asks of the apps above."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from console.hooks import Hook
from failures.intake.kinds.record_kind import RecordKind
from failures.models import FailureProtocol

# Kinds of records whose rows are theirs.
record_kinds: Hook[[], RecordKind[Any]] = Hook()
# Called inside the intake's transaction, once its runs are locked: it must be short, and what it raises rolls
# the whole batch back.
protocols_stored: Hook[[Sequence[FailureProtocol], datetime], None] = Hook()
