"""Failure protocols: found, and what became of their messages."""
