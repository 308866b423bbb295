"""Texts as words, the same for what is stored and for what is looked for, and the index of them.

A word is a run of letters, digits and underscores, without regard to case, at most LONGEST characters of
it. A property with its value is one word too, `=` and a digest: exact, and short however long the value is.
"""

import re
import unicodedata
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from console.database.texts import Wanted, word_index

TABLE = "dlq_words"
INDEX = word_index(TABLE, "dlq_deadletter", "letter_id")


def create_index(apps: Any, editor: Any) -> None:
    for statement in INDEX.statements(INDEX.created):
        editor.execute(statement)


def drop_index(apps: Any, editor: Any) -> None:
    for statement in INDEX.statements(INDEX.dropped):
        editor.execute(statement)


# -- words of texts ------------------------------------------------------------------------------------------


LONGEST = 64
# What one dead letter may add to the index; a body of 64 KB has up to 32,000.
MOST = 20_000

_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words of a text, each once, in their order."""
    plain = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return list(dict.fromkeys(word[:LONGEST] for word in _WORD.findall(plain)))


def pair_word(name: str, value: str) -> str:
    """The word of a property: `name` and `value` exactly as they are."""
    content = f"{len(name)}:{name}={value}".encode("utf-8", "surrogatepass")
    return f"={blake2b(content, digest_size=8).hexdigest()}"


def all_words(texts: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[str]:
    found: dict[str, None] = {}
    for name, value in pairs:
        found[pair_word(name, value)] = None
    for text in texts:
        found.update(dict.fromkeys(words_of(text)))
    return list(found) if len(found) <= MOST else list(found)[:MOST]


# -- words that somebody looks for ---------------------------------------------------------------------------


MOST_WORDS = 20
# Shorter begins would match too much to be looked up.
SHORTEST_BEGIN = 3


class NoWords(ValueError):
    """`code`: `none`, `too_many`, `too_short`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def wanted_words(text: str) -> list[Wanted]:
    """Words of a text that somebody looks for, all of which must be there; True: any word that begins so
    (`abc*`).

    Nothing in it is a language: every other character only parts words. Raises NoWords."""
    found: list[Wanted] = []
    for part in text.split():
        words = words_of(part)
        begins = part.endswith("*") and bool(words)
        found += [(word, begins and word == words[-1]) for word in words]
    if not found or len(found) > MOST_WORDS:
        raise NoWords("too_many" if found else "none")
    if any(begins and len(word) < SHORTEST_BEGIN for word, begins in found):
        raise NoWords("too_short")
    return found


def wanted_pairs(pairs: Iterable[tuple[str, str]]) -> list[Wanted]:
    return [(pair_word(name, value), False) for name, value in pairs]
