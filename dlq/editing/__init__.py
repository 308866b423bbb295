"""Editing dead letters: what may change, the copy that goes instead, what people are shown of it, rules for
many."""
