"""./ma release: both wheels, what they need as a lock with hashes, a bill of materials and a list of
licences. The same commit gives the same wheels, whoever builds them, where and when.

./ma audit: whether every licence is one that the product may be shipped with.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy import proton_wheel
from deploy import release_papers as papers
from deploy.config import REPOSITORY, Config
from deploy.console import DeployError, run_logged, say_if_heard
from deploy.installing import python_packages
from deploy.installing.python_packages import CONSTRAINTS, PYTHON
from deploy.layout import Layout

PACKAGES = {
    "ma-kma": ("broker", "contract", "exposition", "kma"),
    "ma-server": (
        "agents", "alerts", "console", "deploy", "dlq", "failures", "insights", "ma_site", "metrics",
        "pipeline", "retention", "locale", "static", "templates", "manage.py", "Procfile",
    ),
}  # fmt: skip
# What only a clone or only the pipeline needs.
NOT_INSTALLED, PIPELINE = ("supervisor",), ("pyspark", "pyarrow")
# Of hosts with another Python than the one that builds, as Debian 13 has.
NEWER_PYTHONS = ("3.13",)
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


def release(config: Config, arguments: Sequence[str]) -> int:
    """`arguments`: the folder, else dist."""
    if len(arguments) > 1 or any(each.startswith("-") for each in arguments):
        raise DeployError("usage: ./ma release [FOLDER]")
    dist = Path(*arguments).absolute() if arguments else REPOSITORY / "dist"
    log = _installed(config)
    dist.mkdir(parents=True, exist_ok=True)
    for name in PACKAGES:
        for old in dist.glob(f"{name.replace('-', '_')}-*.whl"):
            old.unlink()
    moment = _moment()
    with tempfile.TemporaryDirectory(prefix="ma-release-") as folder:
        source = Path(folder) / "source"
        _export(source)
        for name, parts in PACKAGES.items():
            wheel = _build(name, parts, source, Path(folder) / name, dist, moment, log)
            say_if_heard(f"{_sha256(wheel)}  {wheel.name}")
    proton_wheel.build(dist, moment, log)
    _dependencies(dist, log)
    here = hashes_of(dist)
    for name, lines in _needed().items():
        found = _resolved(lines, log)
        (dist / f"{name}.lock.txt").write_text(
            papers.own_lines(name, version(), here) + papers.lock(found, here), "utf-8"
        )
        bill = papers.bill_of_materials(name, version(), found, moment)
        (dist / f"{name}.cdx.json").write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", "utf-8")
        (dist / f"{name}.licences.txt").write_text(papers.licences(found), "utf-8")
    say_if_heard(f"{dist}: wheels of both and of what they need, locks, bills of materials, licences")
    return 0


def audit(config: Config, arguments: Sequence[str]) -> int:
    if arguments:
        raise DeployError("usage: ./ma audit")
    log = _installed(config)
    refused = [
        f"{each['metadata']['name']}: {papers.licence_of(each['metadata'])}"
        for each in _resolved(python_packages.requirements("requirements.txt"), log)
        if not papers.is_allowed(papers.licence_of(each["metadata"]))
    ]
    for line in refused:
        say_if_heard(f"licences: not allowed: {line}")
    if not refused:
        say_if_heard("licences: ok")
    say_if_heard("vulnerabilities: not checked (no database of advisories here)")
    return 1 if refused else 0


def _installed(config: Config) -> Path:
    layout = Layout(config.data)
    layout.make_folders()
    log = layout.log("release")
    lines = (
        *python_packages.requirements("requirements.txt"),
        *python_packages.requirements("requirements-release.txt"),
    )
    if not python_packages.installed(lines, "release"):
        python_packages.install(lines, "release", log)
    return log


# -- wheels --------------------------------------------------------------------------------------------------


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, check=False)
    if done.returncode != 0:
        raise DeployError(f"a release is built from a clone: {done.stderr.decode().strip()}")
    return done.stdout


def _moment() -> int:
    """Of the commit: no clock of who builds is in what is built."""
    return int(_git("log", "-1", "--format=%ct"))


def _export(target: Path) -> None:
    """What is committed, and nothing else that lies there."""
    target.mkdir()
    subprocess.run(["tar", "-x", "-C", str(target)], input=_git("archive", "HEAD"), check=True)


def _build(
    name: str, parts: Sequence[str], source: Path, stage: Path, dist: Path, moment: int, log: Path
) -> Path:
    stage.mkdir()
    for part in parts:
        place = source / part
        (shutil.copytree if place.is_dir() else shutil.copy2)(place, stage / part)
    for part in ("README.md", "LICENSE"):
        shutil.copy2(source / part, stage / part)
    shutil.copy2(source / "contract" / "__init__.py", stage / "version.py")
    text = (source / "packaging" / f"{name}.toml").read_text("utf-8")
    (stage / "pyproject.toml").write_text(filled_in(name, text), "utf-8")
    for path in sorted(stage.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    run_logged(
        [PYTHON, "-m", "hatchling", "build", "-t", "wheel", "-d", dist],
        what=f"The build of {name}",
        log=log,
        cwd=stage,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(moment), "PYTHONHASHSEED": "0"},
    )
    (built,) = dist.glob(f"{name.replace('-', '_')}-*.whl")
    return built


def hashes_of(dist: Path) -> dict[str, list[str]]:
    """SHA-256 of the wheels of each package and version, by `name==version`."""
    found: dict[str, list[str]] = {}
    for path in sorted(dist.glob("*.whl")):
        name, number = path.stem.split("-")[:2]
        found.setdefault(f"{papers.normal(name)}=={number}", []).append(_sha256(path))
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _needed() -> dict[str, tuple[str, ...]]:
    """What each package needs, and what the pipeline does beside it."""
    every = python_packages.requirements("requirements.txt")
    return {
        "ma-kma": python_packages.requirements("requirements-kma.txt"),
        "ma-server": tuple(line for line in every if not line.startswith(NOT_INSTALLED + PIPELINE)),
        "ma-server-pipeline": tuple(line for line in every if line.startswith(PIPELINE)),
    }


def _dependencies(dist: Path, log: Path) -> None:
    """Wheels of what both need, so that a host needs no index. Spark comes by itself."""
    command: list[str | Path] = [PYTHON, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    command += ["-w", dist, "--find-links", dist, "-c", CONSTRAINTS, *_needed()["ma-server"]]
    run_logged(command, what="pip wheel", log=log)
    for version in NEWER_PYTHONS:
        command = [PYTHON, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "-d", dist]
        command += ["--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={version}"]
        command += [f"--platform={each}" for each in PLATFORMS]
        run_logged([*command, *of_one_python(dist)], what=f"Wheels of Python {version}", log=log)


def of_one_python(dist: Path) -> list[str]:
    """Requirements of those whose wheel is for one version of Python only."""
    found = set()
    for path in dist.glob("*.whl"):
        name, number, *_build, _python, abi, _platform = path.stem.split("-")
        if abi not in ("none", "abi3"):
            found.add(f"{name}=={number}")
    return sorted(found)


def filled_in(name: str, text: str) -> str:
    """With what the requirements files say; a lock has the exact versions."""
    kma = python_packages.requirements("requirements-kma.txt")
    if name == "ma-kma":
        needs, extra = kma, tuple(set(python_packages.requirements("requirements-traces.txt")))
    else:
        more = [line for line in python_packages.requirements("requirements.txt") if line not in kma]
        needs = (
            f"ma-kma=={version()}",
            *(line for line in more if not line.startswith(NOT_INSTALLED + PIPELINE)),
        )
        extra = tuple(line for line in more if line.startswith(PIPELINE))
    text = text.replace("dependencies = []", f"dependencies = {_list(needs)}", 1)
    return re.sub(r"(optional-dependencies\.\w+ = )\[\]", lambda found: found[1] + _list(extra), text)


def _list(lines: Sequence[str]) -> str:
    """Not older than what was tested; ours exactly."""
    needs = [line if line.startswith("ma-") else line.replace("==", ">=") for line in lines]
    return json.dumps(sorted(needs))


def version() -> str:
    text = (REPOSITORY / "contract" / "__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise DeployError("contract/__init__.py names no version")
    return found[1]


# -- what comes with them ------------------------------------------------------------------------------------


def _resolved(lines: Sequence[str], log: Path) -> list[papers.Resolved]:
    """Every package that would be installed, from pip's own report, by name."""
    with tempfile.TemporaryDirectory(prefix="ma-report-") as folder:
        report = Path(folder) / "report.json"
        command: list[str | Path] = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        command += ["--dry-run", "--ignore-installed", "--report", report]
        command += ["-c", CONSTRAINTS, *lines]
        run_logged(command, what="pip's report", log=log)
        found = json.loads(report.read_text("utf-8"))["install"]
    expressions = json.loads(_printed_by_python(EXPRESSIONS))
    for each in found:
        if expression := expressions.get(each["metadata"]["name"]):
            each["metadata"]["license_expression"] = expression
    return sorted(found, key=lambda each: str(each["metadata"]["name"]).lower())


# An older pip leaves this field out of its report; what is installed has it.
EXPRESSIONS = """
import importlib.metadata, json
print(json.dumps({each.metadata["Name"]: each.metadata["License-Expression"]
                  for each in importlib.metadata.distributions() if each.metadata["License-Expression"]}))
"""


def _printed_by_python(program: str) -> str:
    return subprocess.run([PYTHON, "-c", program], check=True, capture_output=True, text=True).stdout
