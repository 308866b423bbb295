"""Mutants that no test can kill, with the reason: what they change is not to be seen from outside."""

EQUIVALENT: dict[str, dict[str, str]] = {
    "dlq/replay/ladder.py": {
        "place: 0 -> -1": "a step before the first one has room for no letter",
    },
    "dlq/replay/outcomes.py": {
        "_chosen: 0 -> -1": "one case has one message key: all of its letters are weak, or none is",
    },
}
