"""An attempt is told once, whatever is raised from its refusal on the way out."""

from itertools import chain
from pathlib import Path

import console
from console.audit.log import is_kept, mark_kept

APPS = ("agents", "alerts", "console", "dlq", "failures", "insights", "ma_site", "retention")


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
    root = Path(console.__file__).parent.parent
    files = chain.from_iterable((root / app).rglob("*.py") for app in APPS)
    marking = [str(path.relative_to(root)) for path in files if "in_audit" in path.read_text("utf-8")]
    assert marking == ["console/audit/log.py"]
