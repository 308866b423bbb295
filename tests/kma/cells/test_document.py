"""docs/explanation/acknowledgement.md holds the table that the tests play."""

import os

from tests.kma.cells.document import DOCUMENT, written


def test_the_document_holds_the_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    now = written(text)
    if os.environ.get("MA_TEST_APPROVE") == "1":
        DOCUMENT.write_text(now, encoding="utf-8")
        text = DOCUMENT.read_text(encoding="utf-8")
    assert text == now, (
        "the table changed; if it was meant: MA_TEST_APPROVE=1 ./ma test tests/kma/cells/test_document.py"
    )
