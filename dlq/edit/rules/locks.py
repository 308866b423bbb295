"""What of a dead letter nobody edits, and what of it does not go with a copy. Pure."""

from collections.abc import Mapping

from contract.names import (
    ANNOTATED_ORIG_ADDRESS,
    ANNOTATED_ORIG_MESSAGE_ID,
    ANNOTATED_ORIG_QUEUE,
    BROKER_PREFIXES,
    BROKERS_OWN,
    DUPLICATE_ID,
    LETTER,
    LETTER_ID,
    LETTER_QUEUE,
)
from contract.typed import Typed

# Ours: they tie a copy to its case.
OWN = frozenset({LETTER, LETTER_QUEUE, LETTER_ID})
# Where it died, and how often it was delivered: true of the letter, not of a new message.
_ORIGIN_PREFIX = "_AMQ_ORIG_"
_ORIGIN_ANNOTATIONS = "x-opt-ORIG-"
assert all(
    name.startswith(_ORIGIN_ANNOTATIONS)
    for name in (ANNOTATED_ORIG_ADDRESS, ANNOTATED_ORIG_QUEUE, ANNOTATED_ORIG_MESSAGE_ID)
)


def is_locked(name: str, masked: frozenset[str]) -> bool:
    """`masked`: names that the person who edits may not see."""
    return name in OWN or name.startswith(BROKER_PREFIXES) or name in masked


def kept_properties(properties: Mapping[str, Typed]) -> dict[str, Typed]:
    """Those that go with the copy."""
    left_out = OWN | BROKERS_OWN | {DUPLICATE_ID}
    return {
        name: item
        for name, item in properties.items()
        if name not in left_out and not name.startswith(_ORIGIN_PREFIX)
    }


def kept_annotations(annotations: Mapping[str, Typed]) -> dict[str, Typed]:
    return {name: item for name, item in annotations.items() if not name.startswith(_ORIGIN_ANNOTATIONS)}
