"""Which tests share a worker of pytest-xdist, and in which order: what takes longest begins first."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

# What shares one installation, one session of Spark, one feed of dead letters, or pages that are rendered
# once. The first prefix that fits. In the order in which they begin on a machine that has not measured
# anything yet.
TOGETHER = {
    "tests/product/test_restored_database.py": "restored database",
    "tests/product/three_servers/": "three servers",
    "tests/product/": "installation",
    "tests/campaigns/": "campaigns",
    "tests/pipeline/": "pipeline",
    "tests/dlq/": "dead letters",
    **dict.fromkeys(
        (f"tests/web/test_pages_{name}.py" for name in ("permissions", "policy", "russian")), "rendered pages"
    ),
}
FIRST = list(dict.fromkeys(TOGETHER.values()))


def group(test: str) -> str:
    """Of a test by its id. Where nothing else is shared it is the file: fixtures of a module are made
    once."""
    file = test.partition("::")[0]
    return next((name for prefix, name in TOGETHER.items() if file.startswith(prefix)), file)


def arrange(items: list[pytest.Item], seconds: Mapping[str, float]) -> None:
    """Sorts by the seconds of the group, given for each file. An unknown file counts one for each test."""
    tests = Counter(item.nodeid.partition("::")[0] for item in items)
    takes: defaultdict[str, float] = defaultdict(float)
    for file, count in tests.items():
        takes[group(file)] += seconds.get(file, count)

    def place(item: pytest.Item) -> tuple[int, float, str]:
        name = group(item.nodeid)
        return FIRST.index(name) if name in FIRST else len(FIRST), -takes[name], name

    items.sort(key=place)


def given(config: pytest.Config, name: str) -> Any:
    """What the controller gave to this worker; None where there are no workers."""
    return getattr(config, "workerinput", {}).get(name)


class Scheduler(LoadScopeScheduling):
    """Of pytest-xdist, with the groups from above instead of files."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by the number of tests: the workers have sorted

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
