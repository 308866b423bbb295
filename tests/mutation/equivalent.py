"""Mutants that no test can kill, with the reason: what they change is not to be seen from outside."""

EQUIVALENT: dict[str, dict[str, str]] = {
    "contract/acknowledging.py": {
        "_bytes: True -> False": "a text from which signs were skipped is not canonical, which is refused as well",
    },
    "contract/text.py": {
        "storable: text.isascii() and '\\x00' not in text -> False": "a shortcut: the long way gives the same",
        "storable: '\\x00' -> ''": "the same shortcut is never taken then",
    },
    "contract/redelivery.py": {
        "_grown: 0 -> -1": "a delay below 0 is raised to 0 by the only caller",
    },
    "dlq/replay/ladder.py": {
        "place: 0 -> -1": "a step before the first one has room for no letter",
    },
    "dlq/replay/outcomes.py": {
        "_chosen: 0 -> -1": "one case has one message key: all of its letters are weak, or none is",
    },
}
