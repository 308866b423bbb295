"""Bodies that a Core client compressed: exactly as long as their sender said, or left as they are."""

import zlib
from typing import Any

import pytest

from broker.amqp import compressed
from broker.amqp.compressed import declared_size, inflated, is_cut, missing_bytes, without_padding
from contract.typed import Typed

BODY = b"order " * 50
SMALL = zlib.compress(BODY)


def said(size: Any, flag: Any = True) -> dict[str, Typed]:
    return {
        "_AMQ_LARGE_COMPRESSED": Typed("boolean", flag),
        "_AMQ_LARGE_SIZE": Typed("long", size),
    }


@pytest.mark.parametrize(
    ("flag", "size", "declared"),
    [
        (True, 7, 7), (True, 0, 0), (True, -1, None), (True, True, None), (True, "7", None), (True, None,
        None),
        (False, 7, None), (None, 7, None), (1, 7, None), ("true", 7, None),
    ],
)  # fmt: skip
def test_the_two_properties_say_how_large_it_is(flag: object, size: object, declared: int | None) -> None:
    assert declared_size(flag, size) == declared


@pytest.mark.parametrize(
    ("body", "size", "missing"),
    [
        (b"abc", 5, 2),
        (b"abc", 3, 0),
        (b"abc", 2, 0),
        (bytearray(b"a"), 4, 3),
        (memoryview(b"ab"), 4, 2),
        ("abc", 5, 0),
    ],
)
def test_how_much_is_missing(body: object, size: int, missing: int) -> None:
    assert missing_bytes(body, True, size) == missing
    assert missing_bytes(body, False, size) == 0


def test_only_zeros_behind_the_end_are_padding() -> None:
    assert without_padding(b"abc\0\0", True, 3) == b"abc"
    assert without_padding(b"abc\0x", True, 3) == b"abc\0x"
    assert without_padding(b"abc\0\0", None, 3) == b"abc\0\0"
    assert without_padding(b"abc", True, 5) == b"abc"
    for other in ("abc\0\0", None, 7, {"a": 1}):
        assert without_padding(other, True, 3) is other


def test_a_body_of_another_length_than_said_is_cut() -> None:
    assert is_cut(SMALL, said(len(BODY)))
    assert not is_cut(BODY, said(len(BODY)))
    assert not is_cut(SMALL, said(len(BODY), flag=False)) and not is_cut(SMALL, {})
    assert not is_cut("text", said(1))


def test_it_is_inflated_where_it_is_exactly_what_was_said() -> None:
    assert inflated(SMALL, said(len(BODY))) == BODY
    assert inflated(zlib.compress(b""), said(0)) == b""
    for size in (len(BODY) - 1, len(BODY) + 1, 0):
        assert inflated(SMALL, said(size)) is None
    assert inflated(SMALL + b"more", said(len(BODY))) is None
    assert inflated(SMALL[:-1], said(len(BODY))) is None
    assert inflated(b"no stream", said(len(BODY))) is None
    assert inflated(SMALL, {}) is None


@pytest.mark.parametrize("declared", [0, 300])
def test_no_more_is_inflated_than_shows_that_it_is_longer(
    monkeypatch: pytest.MonkeyPatch, declared: int
) -> None:
    """zlib takes 0 for no bound at all."""
    asked: list[int] = []

    class Engine:
        eof, unused_data = True, b""

        def decompress(self, body: bytes, most: int) -> bytes:
            asked.append(most)
            return b"x" * declared

    monkeypatch.setattr(zlib, "decompressobj", Engine)
    assert inflated(b"", said(declared)) == b"x" * declared
    assert asked == [declared + 1]


def test_what_would_take_too_much_memory_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compressed.MOST_BYTES == 16 * 1024 * 1024
    monkeypatch.setattr(compressed, "MOST_BYTES", len(BODY))
    assert inflated(SMALL, said(len(BODY))) == BODY
    monkeypatch.setattr(compressed, "MOST_BYTES", len(BODY) - 1)
    assert inflated(SMALL, said(len(BODY))) is None
