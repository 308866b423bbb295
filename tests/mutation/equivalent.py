"""Mutants that no test can kill, with the reason: what they change is not to be seen from outside."""

_LOOKS = "how far back the newest window is looked for first, not what it is"

EQUIVALENT: dict[str, dict[str, str]] = {
    "agents/services/windows.py": {
        f"module: {change}": _LOOKS
        for change in (
            *("1 -> 2", "1 -> 0", "1 -> 2 #2", "1 -> 0 #2"),
            *("32 -> 33", "32 -> 31", "366 -> 367", "366 -> 365"),
        )
    },
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
    "dlq/pages/pace.py": {
        "module: 20 -> 21": "who asks reads so many slices; the rule takes what it is given",
        "module: 20 -> 19": "who asks reads so many slices; the rule takes what it is given",
    },
    "dlq/replay/ladder.py": {
        "place: 0 -> -1": "a step before the first one has room for no letter",
    },
    "dlq/replay/outcomes.py": {
        "_chosen: 0 -> -1": "one case has one message key: all of its letters are weak, or none is",
    },
}
