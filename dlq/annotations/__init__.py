"""Describes what people know of dead letters: notes, faults that are known ("muted"), and who is at work on
what.

All of it is about a case (a message key), a fingerprint, or a setting whole, never about one row of the
index: it outlives replays, purges and rebuilds.
"""
