"""Describes what this app asks of those above it. They implement it when they are ready."""

from console.hooks import Hook
from metrics.timeline.events import EventKind

# Kinds of events whose rows are theirs, beside those of this app (`metrics.timeline.queries`).
event_kinds: Hook[[], EventKind] = Hook()
