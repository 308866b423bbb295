"""Putting dead letters into the index of words: in the transaction that stores them, or later, in bounded
pieces."""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from hashlib import blake2b

from django.db import transaction

from broker.amqp.codec import decode
from broker.port import MessageUndecodable
from contract.typed import Typed, from_json, text_of
from dlq.dead_letters.masks import everybodys_masks
from dlq.dead_letters.rules.json_masks import masked_body
from dlq.dead_letters.rules.parser import HEAD_OF_TEXT
from dlq.models import DeadLetter, WordRebuild
from dlq.search.words import INDEX, all_words

# -- which words a dead letter has ---------------------------------------------------------------------------
#
# What its setting masks is left out of its words: a search would tell it. A masked property is found by its
# exact value alone, and only by who may see it (`Masks.refusal`). `words_without` says what was left out, so
# that a mask which came later is noticed.


# Types whose JSON form is what people read.
AS_STORED = frozenset({"string", "symbol"})
# Characters of a body whose words are found.
SEARCHED = 64 * 1024


def masked_names_digest(names: Iterable[str]) -> str:
    """Returns for `words_without` which names were left out."""
    return blake2b("\0".join(sorted(names)).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def texts_of(letter: DeadLetter, names: Set[str], pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Body and values of properties (`property_texts`), without those that are masked (`names`); nothing of
    bytes that are no message."""
    if not letter.body_kind:
        return []
    properties = [text for name, text in pairs if name not in names]
    body = masked_body(is_body_complete(letter), names, cut=letter.truncated)
    return [body or "", *properties]


def is_body_complete(letter: DeadLetter) -> str:
    """Returns the body as far as it is searched. The row's own head suffices for a short one: no message is
    parsed for it."""
    if len(letter.body_text) < HEAD_OF_TEXT:
        return "" if _is_hexadecimal(letter) else letter.body_text
    try:
        value = decode(bytes(letter.encoded)).body
    except MessageUndecodable:
        return ""
    return _text(value)


def _text(body: Typed) -> str:
    if isinstance(body.value, str):
        return body.value[: SEARCHED + 1]
    if not isinstance(body.value, bytes):
        return text_of(body)
    return body.value[:SEARCHED].decode("utf-8", "replace")


def _is_hexadecimal(letter: DeadLetter) -> bool:
    """Bytes that are no text; a text that only looks like it loses nothing but its own one word."""
    return letter.body_kind != "value" and letter.body_text.startswith("0x")


def property_texts(letter: DeadLetter) -> list[tuple[str, str]]:
    """Name and value of each property as people read them."""
    found = []
    for item in letter.properties:
        try:
            value = item["value"] if item["type"] in AS_STORED else text_of(from_json(item))
            found.append((str(item["name"]), value))
        except (KeyError, TypeError, ValueError):
            continue
    return found


# Dead letters of one step of `catch_up`; a body has up to 1 MB.
PIECE = 200


def prepare(rows: Sequence[DeadLetter]) -> list[list[str]]:
    """The words of dead letters that are about to be stored. Sets `words_without`."""
    masks = everybodys_masks()
    found = []
    for row in rows:
        names, pairs = masks.names(row), property_texts(row)
        found.append(all_words(texts_of(row, names, pairs), pairs))
        row.words_without = masked_names_digest(names)
    return found


def add_words(rows: Sequence[DeadLetter], words: Sequence[Sequence[str]]) -> None:
    """After the dead letters got their numbers, in the same transaction: a kill before its commit leaves
    neither."""
    INDEX.add([(row.pk, each) for row, each in zip(rows, words, strict=True) if each])


def catch_up(most: int = PIECE) -> int:
    """Words of dead letters that were stored before there was an index of words; how many. Two at a time take
    turns, or one of them finds nothing: the dead letters are locked, where the database has locks of rows.
    While an index that needs words is built again, the rebuild comes to them."""
    with transaction.atomic():
        if INDEX.needs_words and WordRebuild.objects.filter(open=True).exists():
            return 0
        rows = DeadLetter.objects.filter(words_without="").select_related("content").order_by("pk")
        letters = list(rows.select_for_update(skip_locked=True, of=("self",))[:most])
        index_words(letters)
    return len(letters)


def index_words(letters: Sequence[DeadLetter]) -> None:
    """Adds the words of dead letters of which the index has none, and marks them. In a transaction."""
    add_words(letters, prepare(letters))
    marked: dict[str, list[int]] = defaultdict(list)
    for letter in letters:
        marked[letter.words_without].append(letter.pk)
    for without, numbers in marked.items():
        DeadLetter.objects.filter(pk__in=numbers).update(words_without=without)
