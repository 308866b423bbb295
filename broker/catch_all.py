"""The filter of the queue that takes the dead letters of nobody's. Pure.

`NOT IN` is not true for NULL, so a letter without an origin has to be named.
"""

import re
from collections.abc import Collection

from contract.properties import ORIG_QUEUE

_IS_NULL = f"{ORIG_QUEUE} IS NULL"
_TAKES_ALL = f"{ORIG_QUEUE} IS NOT NULL OR {_IS_NULL}"
_NOT_IN = re.compile(rf"{ORIG_QUEUE} NOT IN \(([^)]*)\) OR {_IS_NULL}")


def catch_all_filter(keys: Collection[str]) -> str:
    """Takes what comes from no queue of `keys`."""
    if not keys:
        return _TAKES_ALL
    for key in keys:
        if "'" in key or ")" in key:
            raise ValueError(f"no key of a setting: {key!r}")
    listed = ", ".join(f"'{key}'" for key in sorted(keys))
    return f"{ORIG_QUEUE} NOT IN ({listed}) OR {_IS_NULL}"


def keys_of(selector: str) -> frozenset[str] | None:
    """The keys that a filter of ours leaves out; None when it is none of ours."""
    if selector == _TAKES_ALL:
        return frozenset()
    match = _NOT_IN.fullmatch(selector)
    return None if match is None else frozenset(part.strip().strip("'") for part in match[1].split(","))
