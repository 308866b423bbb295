"""The order of tests for a change: those that execute it, then those near it, then the cheapest."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import PurePath

# So many of each file before any file has more: what is broken shows early.
FIRST = 8


@dataclass(frozen=True)
class Portion:
    """Tests of one file that run together: `names`, or what is left of the file."""

    file: str
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Ranking:
    """What is known of the files of tests. `nearness`: the higher, the earlier."""

    files: Sequence[str]
    changed: Collection[str] = ()
    touching: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    approved: Collection[str] = ()
    nearness: Mapping[str, float] = field(default_factory=dict)
    tests: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


def portions(ranking: Ranking) -> list[Portion]:
    """Each file has one portion without names: nothing is left out but by time."""
    known = set(ranking.files)
    touching = {
        name: key for name, key in ranking.touching.items() if _file(name) in known - set(ranking.changed)
    }
    first, more = _by_file(touching)
    rest = sorted(known - set(ranking.changed), key=lambda file: _late(ranking, file))
    near = [file for file in rest if ranking.nearness.get(file, 0) >= 1]
    ordered = [
        *(Portion(file) for file in sorted(set(ranking.changed) & known)),
        *first,
        *(Portion(file) for file in rest if file in ranking.approved),
        *more,
        *(Portion(file) for file in near if file not in ranking.approved),
        *(Portion(file) for file in rest if file not in ranking.approved and file not in near),
    ]
    return ordered


def _by_file(touching: Mapping[str, tuple[float, int]]) -> tuple[list[Portion], list[Portion]]:
    ranked = sorted(touching, key=lambda name: (touching[name], name))
    first, more = [], []
    for file, group in groupby(sorted(ranked, key=_file), key=_file):
        names = tuple(group)
        first.append(Portion(file, names[:FIRST]))
        more += [Portion(file, names[FIRST:])] if names[FIRST:] else []
    return sorted(first, key=lambda each: ranked.index(_names(each)[0])), sorted(
        more, key=lambda each: ranked.index(_names(each)[0])
    )


def _names(portion: Portion) -> tuple[str, ...]:
    return portion.names or ()


def _file(name: str) -> str:
    return name.partition("::")[0]


def _late(ranking: Ranking, file: str) -> tuple[int, float, float, str]:
    """Files that the map does not know come before those that execute nothing of the change or stand in front
    already, and last those without a test that is chosen."""
    known = 0 if file not in ranking.tests else 1 if ranking.tests[file] else 2
    return known, -ranking.nearness.get(file, 0), ranking.seconds.get(file, 0), file


def nearness(
    files: Sequence[str],
    distances: Mapping[str, int],
    changed: Collection[str],
    folders: Collection[str] = (),
) -> dict[str, float]:
    """1 for a direct import of what changed or a changed conftest above it, less by distance, and up to 1 for
    words that the paths share: what a page or a task reaches, its test often does not import."""
    words = {file: _words(file) for file in files}
    often = Counter(word for some in words.values() for word in some)
    asked = {path: _words(path) & set(often) for path in changed}
    near = {}
    for file in files:
        weights = [
            sum(1 / often[word] for word in some & words[file]) / sum(1 / often[word] for word in some)
            for some in asked.values()
            if some
        ]
        imported = 1 / distances[file] if file in distances else 0
        below = any(PurePath(file).is_relative_to(folder) for folder in folders)
        near[file] = max(imported, below) + max(weights, default=0)
    return near


def _words(path: str) -> set[str]:
    return set(re.findall(r"[a-z]{3,}", path.rpartition(".")[0].lower())) - {
        "tests",
        "test",
        "templates",
        "init",
    }


def left_out(
    files: Sequence[str], tests: Mapping[str, int], done: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """Of each file how many tests did not run."""
    for file in files:
        if (missing := tests[file] - done.get(file, 0)) > 0:
            yield file, missing
