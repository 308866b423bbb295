"""Commands and programs of tutorials and guides: run by a test, or listed with a reason."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

from alerts.notices.delivery import sign
from tests.handbook.blocks import DOCS, Block, blocks

# Pages whose every block a test runs, and which.
RUN = {
    "tutorials/operator.md": "tests/product/test_tutorials.py",
    "tutorials/first-agent.md": "tests/product/test_tutorials.py",
    "how-to/agents.md": "tests/kma/sdk/test_docs.py",
    "how-to/operations.md": "tests/handbook/test_blocks.py",
}
# (page, first line of the block): why no test runs it.
NOT_RUN: dict[tuple[str, str], str] = {}
# Fences that say no language are commands that nothing runs yet, and file formats. May only fall.
WITHOUT_A_LANGUAGE = 32
FENCE = re.compile(r"^```(\S*).*?^```$", re.DOTALL | re.MULTILINE)
PAGES = sorted([*DOCS.glob("tutorials/*.md"), *DOCS.glob("how-to/*.md")])
RUSSIAN = sorted(DOCS.glob("ru/tutorials/*.md"))


def every_block() -> list[Block]:
    return [block for page in PAGES for block in blocks(page)]


def test_every_block_is_run_or_listed() -> None:
    found = every_block()
    listed = [block for block in found if (block.page, block.text.splitlines()[0]) in NOT_RUN]
    unknown = [block for block in found if block.page not in RUN and block not in listed]
    assert not unknown, unknown
    assert len(listed) * 20 <= len(found), "at most 5 %"
    assert len(listed) == len(NOT_RUN) and all(NOT_RUN.values())
    assert {block.page for block in found} >= set(RUN)


def test_fences_without_a_language_only_become_fewer() -> None:
    found = [fence for page in PAGES for fence in FENCE.findall(page.read_text("utf-8"))]
    assert found.count("") == WITHOUT_A_LANGUAGE


@pytest.mark.parametrize("page", RUSSIAN, ids=lambda page: page.stem)
def test_the_russian_tutorial_has_the_blocks_of_the_english_one(page: Path) -> None:
    def fences(path: Path) -> list[str]:
        text = path.read_text("utf-8")
        return [match.group() for match in FENCE.finditer(text) if not match.group().startswith("```{")]

    assert fences(page) == fences(DOCS / page.relative_to(DOCS / "ru"))


def test_every_tutorial_is_there_in_russian() -> None:
    assert [page.name for page in RUSSIAN] == [page.name for page in sorted(DOCS.glob("tutorials/*.md"))]


def test_a_receiver_knows_notices_by_the_program_of_the_guide() -> None:
    (block,) = blocks(DOCS / "how-to" / "operations.md")
    program: dict[str, Any] = {}
    exec(block.text, program)
    now = str(int(time.time()))
    headers = {"MA-Timestamp": now, "MA-Signature": f"v1={sign('secret', now, b'{}')}"}
    assert program["is_ours"]("secret", headers, b"{}")
    assert not program["is_ours"]("other", headers, b"{}")
    assert not program["is_ours"]("secret", headers, b"{ }")
    assert not program["is_ours"]("secret", headers | {"MA-Timestamp": str(int(now) - 600)}, b"{}")
