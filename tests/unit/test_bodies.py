"""Bodies of requests: their bounds, how they are packed, what is JSON."""

import gzip
import io
import json
from types import SimpleNamespace
from typing import Any

import pytest

from console.rest.errors import ApiProblem
from console.rest.parsing import BodyTooLarge, BoundedJsonParser, NotJson

LIMIT = 100


def parsed(body: bytes, encoding: str = "", limit: int = LIMIT) -> tuple[Any, int]:
    """Returns what was read, and how many bytes are left unread."""
    stream = io.BytesIO(body)
    context = {
        "view": SimpleNamespace(body_limit=limit),
        "request": SimpleNamespace(headers={"Content-Encoding": encoding}),
    }
    try:
        return BoundedJsonParser().parse(stream, "application/json", context), 0
    except BodyTooLarge:
        return BodyTooLarge, len(body) - stream.tell()


def test_a_body_as_long_as_its_bound_is_read() -> None:
    body = json.dumps("x" * (LIMIT - 2)).encode()
    assert len(body) == LIMIT
    assert parsed(body) == ("x" * (LIMIT - 2), 0)


@pytest.mark.parametrize("longer", [1, 10, LIMIT])
def test_one_that_is_a_little_too_long_is_read_to_its_end(longer: int) -> None:
    """Its sender would see no answer."""
    assert parsed(b"x" * (LIMIT + longer)) == (BodyTooLarge, 0)


def test_nobody_reads_a_long_body_to_its_end() -> None:
    found, left = parsed(b"x" * 2_000_000)
    assert found is BodyTooLarge and left > 1_000_000


def test_packed_ones_are_bounded_by_what_is_in_them() -> None:
    assert parsed(gzip.compress(b'{"a": 1}'), "gzip") == ({"a": 1}, 0)
    assert parsed(gzip.compress(b"[" + b" " * LIMIT + b"]"), "GZIP")[0] is BodyTooLarge


def test_another_packing_is_refused_by_its_name() -> None:
    assert parsed(b"[]", "identity") == ([], 0)
    with pytest.raises(ApiProblem) as refused:
        parsed(b"[]", "br")
    assert "br" in str(refused.value.detail) and refused.value.where == "Content-Encoding"


@pytest.mark.parametrize("body", [b"", b"{", b"NaN", b"[Infinity]", b"\xff", b"[" * 100_000, b"{'a': 1}"])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(NotJson):
        parsed(body, limit=1_000_000)
