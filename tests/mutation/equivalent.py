"""Mutants that no test can kill, with the reason: what they change is not to be seen from outside."""

EQUIVALENT: dict[str, dict[str, str]] = {}
