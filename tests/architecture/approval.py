"""Approved files: the surface as text in the repository, so that a change of it is a visible diff."""

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "approved"


def assert_approved(name: str, received: str) -> None:
    """Compares with `approved/NAME`. MA_TEST_APPROVE=1 accepts what was received: then look at the diff."""
    file = FOLDER / name
    received = received.rstrip() + "\n"
    if os.environ.get("MA_TEST_APPROVE") == "1":
        file.write_text(received, encoding="utf-8")
    approved = file.read_text(encoding="utf-8") if file.exists() else ""
    assert received == approved, (
        f"the surface changed; if it was meant: MA_TEST_APPROVE=1 ./ma test {FOLDER.parent}"
    )
