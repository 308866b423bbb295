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
    "failures/comparing.py": {
        "_difference: after > scaled -> after >= scaled": "equal ones are the same, which was decided before",
    },
    "failures/what_if.py": {
        "Replay.add: 1 -> 0 #2": "one that gave it up is as little below 0 as below 1",
        "Replay._switch_off: assert step.trip is not None -> pass": "for the type checker: the caller has looked",
    },
    "failures/tally.py": {
        "story: 0 -> -1": "no step has a number below 0",
    },
    "failures/odd_server.py": {
        "oddity: failing <= tried.keys() -> failing < tried.keys()": "one is fewer than the two at least that tried",
        "oddity: 0 -> -1 #3": "a rate below 0 is less than a third of another one, as 0 is",
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
