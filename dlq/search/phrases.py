"""Phrases, and exact values of properties, in dead letters. The index of words has no positions: what has the
words is compared with the text that is stored, and with nothing of it that is masked for anybody."""

from collections.abc import Sequence

from console.database.phrases import has_all
from dlq.dead_letters.masks import everybodys_masks
from dlq.models import DeadLetter
from dlq.search.word_index import property_texts, texts_of

# Compared together; a body has up to 1 MB.
TOGETHER = 20


def compared(numbers: Sequence[int], phrases: Sequence[str], values: Sequence[str]) -> list[int]:
    """Those dead letters that have all phrases, each in its body or in one property, and all values, each as
    that of a property; in the same order."""
    masks = everybodys_masks()
    rows = DeadLetter.objects.filter(pk__in=numbers).select_related("content")
    found = set()
    for row in rows:
        names, pairs = masks.names(row), property_texts(row)
        known = {text for name, text in pairs if name not in names}
        if known.issuperset(values) and has_all(texts_of(row, names, pairs) if phrases else (), phrases):
            found.add(row.pk)
    return [number for number in numbers if number in found]
