"""Mutants that no test can kill, with the reason: what they change is not to be seen from outside."""

# Of contract/wire.py.
FAST = "a shortcut: the long way gives the same"
_FIRST = "type(data) is as_it_is"
_SECOND = "text and type(data) is str and data.isascii() and ('\\x00' not in data)"
# Of dlq/edit/rules/bulk_rule.py.
NO_NAMES = "a shortcut: of no names no field is found"

EQUIVALENT: dict[str, dict[str, str]] = {
    "alerts/notices/routing.py": {
        "module: 1 -> 2": "the window of the day before yesterday is over",
        "module: 15 -> 16": "an earlier window is found first",
    },
    "contract/acknowledgements.py": {
        "_bytes: True -> False": (
            "a text from which signs were skipped is not canonical, which is refused as well"
        ),
    },
    "broker/amqp/compressed.py": {
        "without_padding: declared is None or not isinstance(body, bytes) or any(body[declared:]) -> "
        "not isinstance(body, bytes) or any(body[declared:])": "a slice up to None is the whole",
    },
    "contract/typed.py": {
        "storable: text.isascii() and '\\x00' not in text -> False": (
            "a shortcut: the long way gives the same"
        ),
        "storable: '\\x00' -> ''": "the same shortcut is never taken then",
    },
    "contract/wire.py": {
        "module: 'T' -> ''": "a name for the type checker",
        "module: 'JSON' -> ''": "a name for the type checker",
        "module: 'JSON' -> '' #2": "a name for the type checker",
        "unknown: not data.keys() <= known -> True": "a shortcut: the long way finds nothing",
        "unknown: data.keys() <= known -> data.keys() < known": "a shortcut: the long way finds nothing",
        "_reader_of: arg is not type(None) -> True": "None stands last in each hint",
        "_scalar: hint in (bool, int, float) -> False": FAST,
        f"_scalar.read: {_FIRST} or ({_SECOND}) -> {_FIRST} and ({_SECOND})": FAST,
        f"_scalar.read: {_FIRST} or ({_SECOND}) -> {_SECOND}": FAST,
        f"_scalar.read: {_FIRST} or ({_SECOND}) -> {_FIRST}": FAST,
        f"_scalar.read: {_FIRST} or ({_SECOND}) -> False": FAST,
        "_scalar.read: '\\x00' -> ''": FAST,
        "_exactly: isinstance(data, bool) and kind is not bool -> isinstance(data, bool)": (
            "what is true or false has gone the short way"
        ),
    },
    "contract/redelivery.py": {
        "_grown: 0 -> -1": "a delay below 0 is raised to 0 by the only caller",
    },
    "dlq/edit/rules/values.py": {
        "module: assert all((name.startswith(_ORIGIN_ANNOTATIONS) for name in (ANNOTATED_ORIG_ADDRESS, "
        "ANNOTATED_ORIG_QUEUE, ANNOTATED_ORIG_MESSAGE_ID))) -> pass": (
            "for the reader: the three names are constants that begin with it"
        ),
        "module: all((name.startswith(_ORIGIN_ANNOTATIONS) for name in (ANNOTATED_ORIG_ADDRESS, "
        "ANNOTATED_ORIG_QUEUE, ANNOTATED_ORIG_MESSAGE_ID))) -> any((name.startswith(_ORIGIN_ANNOTATIONS) "
        "for name in (ANNOTATED_ORIG_ADDRESS, ANNOTATED_ORIG_QUEUE, ANNOTATED_ORIG_MESSAGE_ID)))": (
            "for the reader: the three names are constants that begin with it"
        ),
    },
    "agents/provisioning/drain.py": {
        "_of_now: 0 -> -1 #2": "there is one beginning: the first is the last",
    },
    "failures/error_groups/rules.py": {
        "odd_servers: 2 -> 1": "one server has no others, and is never odd",
        "_is_odd: chance_of_failures(here, others) < level -> chance_of_failures(here, others) <= level": (
            "no chance is exactly a level"
        ),
        "_difference: after > scaled -> after >= scaled": "equal ones are the same, which was decided before",
        "oddity: failing <= tried.keys() -> failing < tried.keys()": (
            "one is fewer than the two at least that tried"
        ),
        "oddity: 0 -> -1 #3": "a rate below 0 is less than a third of another one, as 0 is",
        "module: 2 -> 3": "above every number as well, which begin with 1",
        "version_key: assert found is not None -> pass": (
            "for the type checker: the pattern matches everything"
        ),
        "version_key: 0 -> 1": "of one release, what ends first comes first anyway",
        "_is_decided: 0 -> -1": "the rest of a foreign version has one part",
        "_is_decided: 0 -> -1 #2": "the rest of a foreign version has one part",
        "_python_key: 1 -> 2 #3": "a release that is developed comes before its other stages anyway",
        "_python_key: 0 -> 1": "names of stages are compared with each other, or with nothing",
        "_python_key: 0 -> -1": "names of stages are compared with each other, or with nothing",
        "_tokens: 0 -> -1": "a word is below every number as well, which begin with 1",
    },
    "failures/what_if.py": {
        "BackTest.add: 1 -> 0 #2": "one that gave it up is as little below 0 as below 1",
        "BackTest._switch_off: assert step.trip is not None -> pass": (
            "for the type checker: the caller has looked"
        ),
        "story: 0 -> -1": "no step has a number below 0",
    },
    "dlq/edit/rules/json_pointer.py": {
        "locate: 0 -> -1": "a place before the first sign is the first sign",
        "remove: _members(text, start) or [] -> _members(text, start)": "of no members none is chosen",
        "_chosen: 1 -> 2": "any number below 0 is no index",
        "_members: '' -> 'mutant'": "nobody reads the name of an item",
        "_space: found -> True": "for the type checker: no space is found as well",
    },
    "dlq/edit/rules/bulk_rule.py": {
        "is_hidden: operation.op == 'set_json' and bool(names) and names_in(json.loads(operation.json), "
        "names) -> operation.op == 'set_json' and names_in(json.loads(operation.json), names)": NO_NAMES,
        "_json: before is not None and locked and names_in(json.loads(before), locked) -> "
        "before is not None and names_in(json.loads(before), locked)": NO_NAMES,
        "_json: True -> False": "what is put together of JSON is JSON, so its form need not be looked at",
    },
    "dlq/subscriptions/rules.py": {
        "_key: b'' -> b'mutant'": "a body counts only where there is no id",
    },
    "dlq/replay/rules/slices.py": {
        "module: 20 -> 21": "who asks reads so many slices; the rule takes what it is given",
        "module: 20 -> 19": "who asks reads so many slices; the rule takes what it is given",
    },
    "dlq/replay/rules/ladder.py": {
        "position_in_ladder: 0 -> -1": "a step before the first one has room for no letter",
    },
    "agents/timetable.py": {
        "last_window: break -> continue": "the longer looks reach behind the start as well",
        "_of_crontab: due > last -> due >= last": "cronsim gives no instant twice in a row",
    },
    "agents/schedules/text.py": {
        "_days_of_month: return '' -> return None": "it is only asked whether it is empty",
        "_days_of_month: day > 0 -> day >= 0": "no day is 0",
        "_days_of_month: 0 -> -1": "the words for last days are far below -1",
        "_weekdays: return '' -> return None": "it is only asked whether it is empty",
        "_months: return '' -> return None": "it is only asked whether it is empty",
        "_months: '' -> 'mutant' #2": "no month is 0",
        "_step: return 0 -> return None": "it is only asked whether there is a step",
    },
    "kma/delivery/breaker.py": {
        "RunBreaker.__init__: 0 -> -1": "a run that handled less than 0 has proved as little",
        "RunBreaker.succeeded: self.counts.any -> True": "where nothing counts there is nothing to forget",
    },
    "dlq/replay/preflight/rules.py": {
        "_warnings: policy.one -> True": "a letter that goes has a doubt only where it was named alone",
        "Policy.doubt: 0 -> -1": "one that was never replayed is below every bound, which is 0 at least",
    },
    "dlq/outcomes/rules.py": {
        "_chosen: 0 -> -1": "one case has one message key: all of its letters are weak, or none is",
    },
}
