"""Failures of one place are one group, whatever the message at hand was."""

from contract.fingerprint import fingerprint, normalised, user_frame

TRACEBACK = """Traceback (most recent call last):
  File "/opt/app/kma/child.py", line 80, in handle
  File "/srv/agents/orders.py", line {line}, in price
    return PRICES[order["kind"]]
  File "/usr/lib/python3.11/collections/__init__.py", line 1010, in __getitem__
KeyError: {key}
"""


def test_the_innermost_frame_of_user_code_is_the_place() -> None:
    assert user_frame(TRACEBACK.format(line=7, key="'gift'")) == "orders.py:price"


def test_line_numbers_and_values_do_not_split_a_group() -> None:
    one = fingerprint("KeyError", "'gift'", TRACEBACK.format(line=7, key="'gift'"))
    assert one == fingerprint("KeyError", "'toy'", TRACEBACK.format(line=9, key="'toy'"))
    assert one.startswith("v1:")


def test_another_type_or_place_is_another_group() -> None:
    text = TRACEBACK.format(line=7, key="'gift'")
    one = fingerprint("KeyError", "'gift'", text)
    assert one != fingerprint("IndexError", "'gift'", text)
    assert one != fingerprint("KeyError", "'gift'", text.replace("in price", "in ship"))


def test_without_a_frame_the_normalised_text_groups() -> None:
    assert fingerprint("exit:1", "process 4711 ended", "") == fingerprint("exit:1", "process 12 ended", "")


def test_ids_numbers_addresses_and_quoted_values_are_taken_out() -> None:
    text = "order 17 of 'Ann' at 0x7f12 with 123e4567-e89b-12d3-a456-426614174000"
    assert normalised(text) == "order <n> of '…' at <address> with <id>"
