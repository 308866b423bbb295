"""What the command line gives for the inputs of an operation."""

import pytest
from django.contrib.auth.models import User
from django.core.management.base import CommandError

from console.operations.inputs import RowInput, TextInput

REASON = TextInput("Reason", longest=10)
PERSON = RowInput(User.objects.all, "username")


def test_a_text_is_bounded_and_may_be_left_out() -> None:
    assert REASON.from_command(None) is None
    assert REASON.from_command("0123456789") == "0123456789"
    with pytest.raises(CommandError, match="At most 10 characters"):
        REASON.from_command("0123456789a")


def test_a_text_can_be_stored() -> None:
    assert REASON.from_command("a\x00b") == "a\N{SYMBOL FOR NULL}b"


@pytest.mark.django_db
def test_a_row_is_found_by_its_key_or_named_as_missing() -> None:
    ada = User.objects.create(username="ada")
    assert PERSON.from_command("ada") == ada
    with pytest.raises(CommandError, match="'bob'"):
        PERSON.from_command("bob")
    assert (PERSON.for_audit(ada), PERSON.for_audit(None)) == ("ada", None)
