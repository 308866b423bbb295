"""What a protocol says of an exception, however hostile it is."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from contract.messages import MAX_TRACEBACK
from kma.handling import failure
from kma.handling.failure import MAX_TEXT, describe


def caught(code: str) -> BaseException:
    try:
        exec(compile(code, "/srv/shop/agent.py", "exec"), {})
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_type_text_place_and_chained_causes_are_there() -> None:
    code = (
        "def price():\n  try: {}['velvet']\n  except KeyError as e: raise ValueError('no "
        "price') from e\nprice()"
    )
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
    assert len(found.traceback) <= MAX_TRACEBACK and "omitted" in found.traceback


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


ENDLESS = {
    "loops": "while True: pass",
    "waits": "import time; time.sleep(3600)",
    "swallows the first alarm": """
    try:
      while True: pass
    except BaseException: pass
    while True: pass""",
}


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure, "CALL_SECONDS", 0.2)
    monkeypatch.setattr(failure, "AGAIN_SECONDS", 0.1)


@pytest.mark.parametrize("body", ENDLESS.values(), ids=list(ENDLESS))
def test_an_exception_whose_text_never_ends_is_described_too(hasty: None, body: str) -> None:
    found = describe(caught(f"class Odd(Exception):\n  def __str__(self):\n    {body}\nraise Odd"))
    assert found.exception_type.endswith("Odd") and "did not end within 0.2 s" in found.text
    assert found.place == "agent.py:<module>" and found.fingerprint.startswith("v1:")


def test_a_cause_whose_text_never_ends_costs_only_itself(hasty: None) -> None:
    code = "class Odd(Exception):\n  def __str__(self):\n    while True: pass\n"
    found = describe(caught(f"{code}try: raise Odd\nexcept Odd as e: raise ValueError('no price') from e"))
    assert (found.exception_type, found.text, found.place) == ("ValueError", "no price", "agent.py:<module>")
    assert "ValueError: no price" in found.traceback


def test_a_text_with_methods_of_its_own_is_only_text() -> None:
    code = (
        "class Text(str):\n  def isascii(self): raise SystemExit\n  def replace(self, *a): raise SystemExit\n"
        "class Odd(Exception):\n  def __str__(self): return Text('a text')\nraise Odd"
    )
    assert describe(caught(code)).text == "a text"


def test_what_the_agent_waits_for_by_an_alarm_of_its_own_goes_on() -> None:
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    signal.setitimer(signal.ITIMER_REAL, 60.0)
    try:
        describe(ValueError("x"))
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60.0
        signal.raise_signal(signal.SIGALRM)
        assert rung == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_in_another_thread_it_is_described_too() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(describe, caught("raise ValueError('x')")).result().text == "x"


def test_causes_that_go_round_in_a_circle_are_described_once() -> None:
    code = (
        "a, b = ValueError('a'), KeyError('b')\na.__cause__, b.__cause__ = b, a\nb.__context__ = a\nraise a"
    )
    found = describe(caught(code))
    assert (found.exception_type, found.text) == ("ValueError", "a")
    assert found.traceback.count("ValueError: a") == 1


def test_a_chain_of_causes_without_end_keeps_type_text_and_place() -> None:
    code = (
        "error = ValueError('first')\nfor n in range(10_000):\n  after = ValueError(n)\n  after.__cause__ = "
        "error\n"
        "  error = after\nraise error"
    )
    found = describe(caught(code))
    assert (found.exception_type, found.text, found.place) == ("ValueError", "9999", "agent.py:<module>")
    assert len(found.traceback) <= MAX_TRACEBACK


def test_of_a_traceback_of_10_mb_head_and_tail_are_kept() -> None:
    found = describe(caught("def fail(): raise ValueError('head' + 'x' * 10_000_000 + 'tail')\nfail()"))
    assert found.traceback.startswith("Traceback (most recent call last)") and found.place == "agent.py:fail"
    assert found.traceback.rstrip().endswith("tail") and len(found.traceback) <= MAX_TRACEBACK


def test_the_memory_of_the_process_is_told() -> None:
    held = bytearray(50_000_000)
    assert describe(ValueError("x")).memory_peak >= len(held)
