"""Phrases: what stands in quotes in a text that somebody looks for, found exactly so: next to each other, in
this order, as words of their own, whatever the case."""

import re
import unicodedata
from collections.abc import Iterable

# Pairs of quotes that people type, and that their programs make of them.
_QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”|«([^»]*)»')
_WORD = re.compile(r"\w")


def parted(text: str) -> tuple[tuple[str, ...], str]:
    """The phrases of a text, and what stands beside them. A phrase without a letter or digit is none."""
    quoted = [" ".join(next(filter(None, each.groups()), "").split()) for each in _QUOTED.finditer(text)]
    phrases = tuple(each for each in quoted if _WORD.search(each))
    return phrases, _QUOTED.sub(" ", text).strip() if phrases else text


def pattern(phrase: str) -> str:
    """A regular expression for it, the same in Python and in PostgreSQL. What it begins or ends with is a
    whole word where it is one."""
    inner = r"\s+".join(re.escape(word) for word in phrase.split())
    begins = r"(^|\W)" if _WORD.match(phrase[0]) else ""
    ends = r"(\W|$)" if _WORD.match(phrase[-1]) else ""
    return f"{begins}{inner}{ends}"


def folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def has_all(texts: Iterable[str], phrases: Iterable[str]) -> bool:
    """Whether each phrase stands in one of the texts."""
    patterns = [re.compile(pattern(folded(phrase))) for phrase in phrases]
    plain = [folded(text) for text in texts]
    return all(any(each.search(text) for text in plain) for each in patterns)
