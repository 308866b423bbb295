"""Phrases in dead letters. The index of words has no positions: what has the words is compared with the text
that is stored, and with nothing of it that is masked for anybody."""

from collections.abc import Sequence

from console.database.phrases import has_all
from dlq.dead_letters.masks import everybodys_masks
from dlq.models import DeadLetter
from dlq.search.word_index import property_texts, texts_of

# Compared together; a body has up to 1 MB.
TOGETHER = 20


def with_phrases(numbers: Sequence[int], phrases: Sequence[str]) -> list[int]:
    """Those dead letters that have all of them, each in its body or in one property, in the same order."""
    masks = everybodys_masks()
    rows = DeadLetter.objects.filter(pk__in=numbers).select_related("content")
    found = {row.pk for row in rows if has_all(texts_of(row, masks.names(row), property_texts(row)), phrases)}
    return [number for number in numbers if number in found]
