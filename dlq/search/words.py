"""Texts as words, the same for what is stored and for what is looked for. Pure.

A word is a run of dead letters, digits and underscores, without regard to case, at most LONGEST characters of
it. A property with its value is one word too, `=` and a digest: exact, and short however long the value is.
"""

import re
import unicodedata
from collections.abc import Iterable
from hashlib import blake2b

LONGEST = 64
# What one dead letter may add to the index; a body of 64 KB has up to 32,000.
MOST = 20_000

_WORD = re.compile(r"\w+")
# ASCII separators of the words in SQLite's index: everything in a word is a dead letter, a digit, `_`, `=` or
# not ASCII.


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
