"""Fenced blocks of pages: each says its language; commands and programs are run by a test, or listed with a
reason."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.notices.channels.webhooks import sign
from deploy.config import REPOSITORY
from tests.handbook.blocks import DOCS, RUN, Block, blocks, fences

# Pages whose every command and program a test runs, and which.
RUN_BY = {
    "how-to/install.md": "tests/deploy/test_release.py",
    "tutorials/operator.md": "tests/product/test_tutorials.py",
    "tutorials/first-agent.md": "tests/product/test_tutorials.py",
    "tutorials/three-hosts.md": "tests/product/test_tutorials.py",
    "tutorials/analyst.md": "tests/product/test_tutorials.py",
    "how-to/pipeline.md": "tests/product/test_tutorials.py",
    "how-to/standalone-agents.md": "tests/kma/sdk/test_docs.py",
    "how-to/answer-later.md": "tests/kma/sdk/test_docs.py",
    "how-to/notices.md": "tests/handbook/test_blocks.py",
    "how-to/upgrade.md": "tests/product/test_upgrade.py",
    "architecture/adding.md": "tests/handbook/test_blocks.py",
    **dict.fromkeys(
        (
            "how-to/operations.md",
            "how-to/agents.md",
            "how-to/another-environment.md",
            "how-to/backup.md",
            "how-to/bulk.md",
            "how-to/disk-full.md",
            "how-to/erase.md",
            "how-to/freeze.md",
            "how-to/postgresql.md",
            "how-to/rehearse.md",
            "how-to/reindex.md",
            "how-to/remote.md",
            "how-to/replay.md",
            "how-to/restore-database.md",
            "how-to/scripts.md",
            "how-to/settings-in-git.md",
            "how-to/site-away.md",
            "how-to/take-over-broker.md",
            "how-to/tls.md",
            "reference/rest.md",
        ),
        "tests/product/test_guides.py",
    ),
}
# (page, first line of the block): why no test runs it.
NOT_RUN = {
    ("README.md", "./ma up --detach"): "`./ma test` runs this test; tests/product runs `./ma up --detach`",
}
# What is no command and no program. A table of contents is Sphinx's.
FORMATS = {"text", "json", "yaml", "ini", "properties", "sql", "{toctree}"}
COMMAND = re.compile(
    r"^\s*(?:\$ |\./ma |curl |export |eval |ssh |cp |rm |mv |python3? |pip |git |\.venv/)", re.MULTILINE
)
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.glob("**/*.md"))]
ENGLISH = [page for page in PAGES if not page.is_relative_to(DOCS / "ru")]
RUSSIAN = sorted(DOCS.glob("ru/tutorials/*.md"))


def every_fence() -> Iterator[Block]:
    return (fence for page in PAGES for fence in fences(page))


def wrong_language(fence: Block) -> bool:
    """Also commands that call themselves a text are wrong."""
    if fence.language in RUN:
        return False
    return fence.language not in FORMATS or COMMAND.search(fence.text) is not None


def test_every_block_says_its_language() -> None:
    found = list(every_fence())
    assert not [fence for fence in found if wrong_language(fence)]
    fenced = sum(
        line.lstrip().startswith("```") for page in PAGES for line in page.read_text("utf-8").splitlines()
    )
    assert fenced == 2 * len(found), "each fence begins or ends one of these blocks"


@pytest.mark.parametrize(
    ("language", "text", "wrong"),
    [
        ("", "anything", True),
        ("bash", "ls", True),
        ("text", "./ma up", True),
        ("text", "1 change to make", False),
        ("sh", "./ma up", False),
    ],
)
def test_a_block_without_its_true_language_is_found(language: str, text: str, wrong: bool) -> None:
    assert wrong_language(Block("a.md", "", language, "", text)) is wrong


def test_every_block_is_run_or_listed() -> None:
    found = [block for page in ENGLISH for block in blocks(page)]
    listed = [block for block in found if (block.page, block.text.splitlines()[0]) in NOT_RUN]
    unknown = [block for block in found if block.page not in RUN_BY and block not in listed]
    assert not unknown, unknown
    assert len(listed) * 20 <= len(found), "at most 5 %"
    assert len(listed) == len(NOT_RUN) and all(NOT_RUN.values())
    assert {block.page for block in found} >= set(RUN_BY)


@pytest.mark.parametrize("page", RUN_BY)
def test_the_test_of_a_page_names_it(page: str) -> None:
    text = (REPOSITORY / RUN_BY[page]).read_text("utf-8")
    assert page in text or Path(page).name in text


def test_examples_of_json_and_yaml_can_be_read() -> None:
    readers: dict[str, Callable[[str], object]] = {"json": json.loads, "yaml": yaml.safe_load}
    found = [fence for fence in every_fence() if fence.language in readers]
    for fence in found:
        readers[fence.language](fence.text)
    assert {fence.language for fence in found} == set(readers)


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    "example", list(blocks(DOCS / "architecture" / "adding.md")), ids=lambda block: str(block.section)
)
def test_the_examples_of_a_recipe_are_the_code_shortened(example: Block) -> None:
    """Each of its lines is a line of the file, in this order."""
    code = iter(lines((REPOSITORY / example.option("from=")).read_text("utf-8")))
    assert [line for line in lines(example.text) if line not in code] == []


@pytest.mark.parametrize("page", RUSSIAN, ids=lambda page: page.stem)
def test_the_russian_tutorial_has_the_blocks_of_the_english_one(page: Path) -> None:
    def shown(path: Path) -> list[tuple[str, str, str]]:
        return [(each.language, each.options, each.text) for each in fences(path) if each.language[0] != "{"]

    assert shown(page) == shown(DOCS / page.relative_to(DOCS / "ru"))


def test_every_tutorial_is_there_in_russian() -> None:
    assert [page.name for page in RUSSIAN] == [page.name for page in sorted(DOCS.glob("tutorials/*.md"))]


def test_a_receiver_knows_notices_by_the_program_of_the_guide() -> None:
    (block,) = blocks(DOCS / "how-to" / "notices.md")
    program: dict[str, Any] = {}
    exec(block.text, program)
    now = str(int(time.time()))
    headers = {"MA-Timestamp": now, "MA-Signature": f"v1={sign('secret', now, b'{}')}"}
    assert program["is_ours"]("secret", headers, b"{}")
    assert not program["is_ours"]("other", headers, b"{}")
    assert not program["is_ours"]("secret", headers, b"{ }")
    assert not program["is_ours"]("secret", headers | {"MA-Timestamp": str(int(now) - 600)}, b"{}")
