"""Failure protocols: found, exported, and what became of their messages."""
