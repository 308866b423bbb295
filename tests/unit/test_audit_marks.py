"""An attempt is told once, whatever is raised from its refusal on the way out."""

from pathlib import Path

import dlq
from dlq.auditing import is_kept, mark_kept


def raised_from(cause: Exception) -> Exception:
    try:
        raise PermissionError("as the page says it") from cause
    except PermissionError as error:
        return error


def test_what_is_raised_from_a_kept_refusal_is_kept() -> None:
    refusal = ValueError("no")
    answer = raised_from(raised_from(refusal))
    assert not is_kept(answer)
    mark_kept(refusal)
    assert is_kept(answer) and is_kept(refusal) and not is_kept(ValueError("another"))


def test_no_other_place_copies_the_mark() -> None:
    root = Path(dlq.__file__).parent
    assert [path.name for path in root.rglob("*.py") if "in_audit" in path.read_text("utf-8")] == [
        "auditing.py"
    ]
