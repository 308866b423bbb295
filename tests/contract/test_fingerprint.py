"""Failures of one place are one group, whatever the message at hand was."""

from contract.fingerprint import fingerprint, is_library, normalised, user_frame

TRACEBACK = """Traceback (most recent call last):
  File "/opt/app/kma/child.py", line 80, in handle
  File "/srv/agents/orders.py", line {line}, in price
    return PRICES[order["kind"]]
  File "/usr/lib/python3.11/collections/__init__.py", line 1010, in __getitem__
KeyError: {key}
"""


def test_the_innermost_frame_of_user_code_is_the_place() -> None:
    assert user_frame(TRACEBACK.format(line=7, key="'gift'")) == "orders.py:price"


def test_of_several_frames_the_innermost_one_counts() -> None:
    two = """  File "/srv/agents/a.py", line 1, in outer\n  File "/srv/agents/b.py", line 2, in inner\n"""
    assert user_frame(two) == "b.py:inner"
    libraries = two.replace("/srv/agents", "/usr/lib/python3.11")
    assert user_frame(libraries) == "b.py:inner", "nobody's own code was reached"


def test_a_place_is_named_without_its_folder_on_any_system() -> None:
    assert user_frame('  File "C:\\agents\\orders.py", line 1, in price') == "orders.py:price"
    assert user_frame('  File "<stdin>", line 1, in price') == "<stdin>:price"
    assert user_frame("no frame at all") == ""


def test_samples_are_code_of_users_though_they_come_with_the_container() -> None:
    assert not is_library("/opt/app/kma/samples/orders.py")
    assert is_library("/opt/app/kma/child.py") and is_library("<frozen importlib._bootstrap>")


def test_groups_that_are_stored_keep_their_fingerprints() -> None:
    """Another value is a new version: each open group would begin once more."""
    assert fingerprint("KeyError", "'gift'", TRACEBACK.format(line=7, key="'gift'")) == "v1:3ee9c0156c03a3d0"
    assert fingerprint("exit:1", "process 4711 ended", "") == "v1:abe55cd67d886808"
    assert fingerprint("E\ud800", "", "") == fingerprint("E?", "", "")


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
    one = fingerprint("exit:1", "process 4711 ended", "")
    assert (
        one == fingerprint("exit:1", "process 12 ended", "") != fingerprint("exit:1", "the disk is full", "")
    )


def test_ids_numbers_addresses_and_quoted_values_are_taken_out() -> None:
    text = "order 17 of 'Ann' at 0x7f12 with 123e4567-e89b-12d3-a456-426614174000"
    assert normalised(text) == "order <n> of '…' at <address> with <id>"
    assert normalised("commit 0123456789ab") == "commit <id>"


def test_of_a_long_text_the_beginning_of_its_first_line_counts() -> None:
    assert normalised("\n one\ntwo\nthree") == "one"
    assert normalised("x" * 300) == "x" * 200
    assert normalised("x" * 300, limit=7) == "x" * 7
    # What is beyond 1,000 characters is not looked at.
    assert normalised("7" * 1000 + "x") == "<id>"
    assert normalised("7" * 999 + "x") == "<n>x"
