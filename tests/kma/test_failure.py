"""What a protocol says of an exception, however hostile it is."""

import json

from contract.messages import MAX_TRACEBACK
from kma.failure import MAX_TEXT, describe


def caught(code: str) -> BaseException:
    try:
        exec(compile(code, "/srv/shop/agent.py", "exec"), {})
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_type_text_place_and_chained_causes_are_there() -> None:
    code = "def price():\n  try: {}['velvet']\n  except KeyError as e: raise ValueError('no price') from e\nprice()"
    found = describe(caught(code))
    assert (found.exception_type, found.text, found.place) == ("ValueError", "no price", "agent.py:price")
    assert "KeyError: 'velvet'" in found.traceback and "direct cause" in found.traceback
    assert found.fingerprint.startswith("v1:")


def test_a_type_is_qualified_by_its_module_unless_it_is_pythons_own() -> None:
    assert describe(json.JSONDecodeError("x", "y", 0)).exception_type == "json.decoder.JSONDecodeError"
    assert describe(KeyError("x")).exception_type == "KeyError"


def test_a_long_text_or_traceback_keeps_head_and_tail() -> None:
    found = describe(caught("raise ValueError('head' + 'x' * 500_000 + 'tail')"))
    assert len(found.text) <= MAX_TEXT + 100 and found.text.startswith("head") and found.text.endswith("tail")
    assert len(found.traceback) <= MAX_TRACEBACK and "left out" in found.traceback


def test_deep_recursion_is_described() -> None:
    found = describe(caught("def f(): f()\nf()"))
    assert found.exception_type == "RecursionError" and len(found.traceback) <= MAX_TRACEBACK


def test_what_no_store_takes_is_replaced() -> None:
    found = describe(ValueError("a\0b\ud800c"))
    found.text.encode()
    assert "\0" not in found.text and "\0" not in found.traceback


def test_an_exception_whose_text_wants_to_leave_is_described_too() -> None:
    found = describe(caught("class Odd(Exception):\n  def __str__(self): raise SystemExit\nraise Odd"))
    assert found.exception_type.endswith("Odd") and "SystemExit in __str__" in found.text


def test_an_exception_whose_text_raises_is_described_too() -> None:
    found = describe(caught("class Odd(Exception):\n  def __str__(self): raise RuntimeError\nraise Odd"))
    assert found.exception_type.endswith("Odd") and "RuntimeError in __str__" in found.text
