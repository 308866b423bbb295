"""What people know of dead letters: notes, faults that are known ("muted"), and who is at work on what.

All of it is about a case (a message key), a fingerprint, or a setting whole, never about one row of the
index: it outlives replays, purges and rebuilds.
"""

from dlq.remarks.about import About, RemarkRefused
from dlq.remarks.known import active_faults, end_fault, fault_of, is_muted, mute, muted, not_muted
from dlq.remarks.notes import note, notes_of
from dlq.remarks.takings import end_taking, hand_over, open_takings, take, taking_of, taking_of_trip

__all__ = [
    "About",
    "RemarkRefused",
    "active_faults",
    "end_fault",
    "end_taking",
    "fault_of",
    "hand_over",
    "is_muted",
    "mute",
    "muted",
    "not_muted",
    "note",
    "notes_of",
    "open_takings",
    "take",
    "taking_of",
    "taking_of_trip",
]
