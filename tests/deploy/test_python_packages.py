import re

import pytest

from deploy.config import REPOSITORY
from deploy.installing import python_packages


def names(lines: tuple[str, ...]) -> set[str]:
    return {re.split(r"[=\[]", line)[0] for line in lines}


def test_the_kma_s_requirements_are_part_of_the_start_and_pyspark_is_not() -> None:
    start = names(python_packages.for_start())
    assert {"celery", "python-qpid-proton", "django", "supervisor"} <= start
    assert "pyspark" not in start
    assert names(python_packages.for_background()) == {"pyspark", "pyarrow"}


FILES = (
    "requirements.txt",
    "requirements-test.txt",
    "requirements-bench.txt",
    "requirements-docs.txt",
    "requirements-traces.txt",
)


@pytest.mark.parametrize("file", FILES)
def test_every_requirement_is_pinned_and_its_constraint_agrees(file: str) -> None:
    constraints = set((REPOSITORY / "constraints.txt").read_text().lower().splitlines())
    for line in python_packages.requirements(file):
        assert re.fullmatch(r"[\w.-]+(\[\w+\])?==[\w.]+", line), line
        assert re.sub(r"\[\w+\]", "", line).lower() in constraints


def test_every_requirement_has_its_line_in_the_documentation() -> None:
    documented = (REPOSITORY / "docs" / "dependencies.md").read_text()
    for file in FILES:
        for name in names(python_packages.requirements(file)):
            assert f"| {name} |" in documented, name


def test_a_kma_host_needs_six_packages_and_one_of_theirs() -> None:
    kma = names(python_packages.requirements("requirements-kma.txt"))
    assert kma == {
        "celery", "prometheus-client", "python-qpid-proton", "redis", "requests", "structlog",
        "async-timeout",
    }  # fmt: skip
