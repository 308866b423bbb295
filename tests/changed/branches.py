"""python -m tests.changed.branches: the share of branches that recorded tests execute, of each package.

Counted are pure and db tests on SQLite, in their own processes. No share may fall below tests/coverage.txt;
MA_TEST_APPROVE=1 writes what was measured there, for a diff that somebody reads."""

import json
import os
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from coverage import Coverage, CoverageData

from deploy.config import REPOSITORY
from tests.changed import execution_map
from tests.services import cache

PART = "branches."
APPROVED = REPOSITORY / "tests" / "coverage.txt"
# Of a percent: what threads and times of day execute differs from night to night.
STEP = 0.5


def measure(where: Path, repository: Path, packages: Sequence[str]) -> dict[str, float]:
    """Percent of each package, rounded down to the step. A file that nothing imports counts with all its
    branches."""
    with TemporaryDirectory() as folder:
        data = CoverageData(basename=f"{folder}/all")
        for part in sorted(where.glob(f"{PART}*")):
            one = CoverageData(basename=str(part))
            one.read()
            data.update(one)
        sources = [path for package in packages for path in (repository / package).rglob("*.py")]
        data.touch_files([str(path) for path in sources if "migrations" not in path.parts])
        data.write()
        coverage = Coverage(data_file=f"{folder}/all", config_file=False, branch=True, messages=False)
        coverage.load()
        coverage.json_report(outfile=f"{folder}/report.json", ignore_errors=True)
        files = json.loads(Path(folder, "report.json").read_text())["files"]
    covered, branches = Counter[str](), Counter[str]()
    for name, file in files.items():
        package = Path(name).resolve().relative_to(repository.resolve()).parts[0]
        covered[package] += file["summary"]["covered_branches"]
        branches[package] += file["summary"]["num_branches"]
    return {
        package: _down(100 * covered[package] / branches[package])
        for package in packages
        if branches[package]
    }


def _down(percent: float) -> float:
    return percent // STEP * STEP


def read(place: Path) -> dict[str, float]:
    rows = (line.split() for line in place.read_text().splitlines()) if place.exists() else ()
    return {package: float(percent) for package, percent in rows}


def write(place: Path, shares: Mapping[str, float]) -> None:
    place.write_text("".join(f"{package} {percent}\n" for package, percent in sorted(shares.items())))


def fallen(measured: Mapping[str, float], approved: Mapping[str, float]) -> list[str]:
    """A package that is gone has nothing to cover."""
    return [
        f"{package}: {measured[package]} % of the branches, {percent} % are approved"
        for package, percent in sorted(approved.items())
        if package in measured and measured[package] < percent
    ]


def main() -> int:
    where = execution_map.scratch()
    if not execution_map.file(where).exists():
        sys.exit("nothing was recorded: ./ma test --night does it")
    packages = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"][
        "root_packages"
    ]
    measured = measure(where, REPOSITORY, packages)
    write(cache() / "coverage.txt", measured)
    shutil.rmtree(execution_map.folder(), ignore_errors=True)
    where.replace(execution_map.folder())
    print("\n".join(f"{package:10} {percent:5} % of the branches" for package, percent in measured.items()))
    if os.environ.get("MA_TEST_APPROVE"):
        write(APPROVED, measured)
    wrong = fallen(measured, read(APPROVED))
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
